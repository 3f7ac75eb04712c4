"""A training loop: logistic regression by stochastic gradients, as one would write it with NumPy.
The random numbers and what it has learned so far go on as if nothing had happened. Run it twice:
the first run stops half-way on purpose."""

import os
import sys

import numpy

import diapause

EPOCHS, BATCH, RATE, STOP_AT = 40, 32, 0.1, 23


def make_data():
    rng = numpy.random.default_rng(7)
    points = rng.normal(size=(2000, 8))
    return points, (points @ numpy.arange(-4.0, 4.0) + rng.normal(size=2000) > 0).astype(float)


def train_one_epoch(points, labels, weights, rng):
    order = rng.permutation(len(points))
    for start in range(0, len(order), BATCH):
        rows = order[start:start + BATCH]
        guess = 1 / (1 + numpy.exp(-points[rows] @ weights))
        weights -= RATE * points[rows].T @ (guess - labels[rows]) / len(rows)


def main():
    points, labels = make_data()
    weights, rng, state = numpy.zeros(8), numpy.random.default_rng(1), {"history": []}
    with diapause.open("training") as run:
        run.protect("weights", weights)
        run.protect_state(state)
        found = run.restart()
        first = found.version if found else 0
        if found:
            print("continuing after step", first, flush=True)
            rng.bit_generator.state = state["rng"]
        for epoch in range(first, EPOCHS):
            train_one_epoch(points, labels, weights, rng)
            state["history"].append(float(numpy.mean((points @ weights > 0) == labels)))
            state["rng"] = rng.bit_generator.state
            if epoch % 5 == 4:
                run.checkpoint(epoch + 1)
            if first == 0 and epoch == STOP_AT:
                print("stopping half-way; run me again", flush=True)
                os._exit(3)  # like a crash: nothing is closed

    alone, rng = numpy.zeros(8), numpy.random.default_rng(1)
    for _ in range(EPOCHS):
        train_one_epoch(points, labels, alone, rng)
    print(f"{len(state['history'])} epochs, accuracy {state['history'][-1]:.3f}")
    return 0 if len(state["history"]) == EPOCHS and numpy.array_equal(weights, alone) else 1


if __name__ == "__main__":
    sys.exit(main())
