"""What the tests in other files work with: everything that the program has which runs them."""


class Base:
    pass


base = Base()


def work_with(module):
    base.__dict__.update(vars(module))
