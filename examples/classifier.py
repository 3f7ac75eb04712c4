"""A scikit-learn model that learns from data in pieces (partial_fit), as one would write it.
The model itself and the order of the pieces are the checkpoint. Run it twice: the first run
stops half-way on purpose.
"""

import os
import sys

import numpy
from sklearn.linear_model import SGDClassifier
from sklearn.utils import shuffle

import diapause

EPOCHS, STOP_AT = 12, 7


def make_data():
    rng = numpy.random.default_rng(3)
    points = rng.normal(size=(3000, 10))
    return points, (points @ numpy.arange(-5.0, 5.0) + rng.normal(size=3000) > 0).astype(int)


def train_one_epoch(points, labels, training):
    points, labels = shuffle(points, labels, random_state=training["random"])
    for piece in numpy.array_split(numpy.arange(len(points)), 30):
        training["model"].partial_fit(points[piece], labels[piece], classes=(0, 1))


def beginning():
    return {"model": SGDClassifier(loss="log_loss", random_state=1),
            "random": numpy.random.RandomState(2)}


def main():
    points, labels = make_data()
    training = beginning()
    with diapause.open("classifier") as run:
        run.protect_state(training)
        found = run.restart()
        first = found.version if found else 0
        if found:
            print("continuing after step", first, flush=True)
        for epoch in range(first, EPOCHS):
            train_one_epoch(points, labels, training)
            run.checkpoint(epoch + 1)
            if first == 0 and epoch == STOP_AT:
                print("stopping half-way; run me again", flush=True)
                os._exit(3)  # like a crash: nothing is closed

    alone = beginning()
    for _ in range(EPOCHS):
        train_one_epoch(points, labels, alone)
    print(f"accuracy {training['model'].score(points, labels):.3f}")
    return 0 if numpy.array_equal(training["model"].coef_, alone["model"].coef_) else 1


if __name__ == "__main__":
    sys.exit(main())
