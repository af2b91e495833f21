"""When requests arrive. Thread rule: pure functions."""

import random
from typing import Iterator


def times(command: dict) -> Iterator[float]:
    """Arrivals at `rate` per second between `start_ns` and `end_ns`, the same for the same `seed`. spread: each is moved by
    up to a quarter of the interval, so that they do not lock step with anything; poisson: independent of each other;
    periodic: at equal intervals, as a camera's frames."""
    chance, interval = random.Random(command["seed"]), 1e9 / command["rate"]
    start, end = command["start_ns"], command["end_ns"]
    if command["arrivals"] == "poisson":
        arrival = start + chance.expovariate(1) * interval
        while arrival < end:
            yield arrival
            arrival += chance.expovariate(1) * interval
    elif command["arrivals"] == "periodic":
        for number in range(int((end - start) / interval)):
            yield start + (number + 0.5) * interval
    else:
        for number in range(int((end - start) / interval)):
            yield start + (number + 0.25 + 0.5 * chance.random()) * interval
