"""How the cost of a hit grows: what the cases objects, connections and rules share. Their rows are numbers."""

from .. import plots, table
from ..rounds import Case


class Growth(Case):
    """`axis` is what the rows count."""

    most_rounds = 2
    axis = about = None

    @classmethod
    def show(cls, figures):
        return table.usual(figures, cls.about, cls.axis)

    @classmethod
    def plots(cls, figures):
        return [plots.of_figures(figures, cls.name, cls.title, xlabel=cls.axis, numbers=True)]
