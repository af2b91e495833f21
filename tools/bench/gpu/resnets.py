"""ResNet-18 and ResNet-50 where torchvision is not installed: the same layers (He et al., "Deep Residual Learning for Image
Recognition"), with random weights.

Thread rule: main thread.
"""

import torch
from torch import nn

WIDTHS = (64, 128, 256, 512)
BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}


def convolution(inputs, outputs, size, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    """Two convolutions of 3 by 3, or one between two of 1 by 1, and the input added to what they give."""

    def __init__(self, inputs, width, stride, is_deep):
        super().__init__()
        outputs = 4 * width if is_deep else width
        if is_deep:
            self.body = nn.Sequential(convolution(inputs, width, 1), nn.ReLU(), convolution(width, width, 3, stride), nn.ReLU(),
                                      convolution(width, outputs, 1))
        else:
            self.body = nn.Sequential(convolution(inputs, width, 3, stride), nn.ReLU(), convolution(width, outputs, 3))
        self.across = convolution(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.across(x))


def resnet(layers):
    is_deep, inputs = layers >= 50, 64
    parts = [convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for stage, (width, blocks) in enumerate(zip(WIDTHS, BLOCKS[layers])):
        for number in range(blocks):
            parts.append(Residual(inputs, width, 2 if stage and not number else 1, is_deep))
            inputs = 4 * width if is_deep else width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))
