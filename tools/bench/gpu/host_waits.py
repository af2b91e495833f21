"""How long a program's host waits for the GPU, in the calls on a GPU tensor that return once its value is on the host. They
are timed wherever they come from, so that the waits of a library's own loop (generate()) show without changing it. Not seen:
calls that block inside the library's C++ (nonzero(), indexing with a mask), copies with to(), and launches that find the
driver's queue full or a gate shut. Those count as the host's own time.

Thread rule: main thread.
"""

import functools
import time

BLOCKING = ("cpu", "item", "tolist", "__bool__", "__int__", "__float__", "__index__")


class Waits:
    """Times them from construction to the end of the process. Of nested calls the outermost counts."""

    def __init__(self, tensor_class):
        self.waited_ns, self.is_inside = 0, False
        for name in BLOCKING:
            setattr(tensor_class, name, self.timed(getattr(tensor_class, name)))

    def timed(self, call):
        @functools.wraps(call)
        def timed_call(tensor, *arguments, **more):
            if self.is_inside or not tensor.is_cuda:
                return call(tensor, *arguments, **more)
            self.is_inside, started = True, time.monotonic_ns()
            try:
                return call(tensor, *arguments, **more)
            finally:
                self.waited_ns += time.monotonic_ns() - started
                self.is_inside = False
        return timed_call

    def take_ms(self):
        """The time that was waited since the last call of this function."""
        waited_ns, self.waited_ns = self.waited_ns, 0
        return waited_ns / 1e6
