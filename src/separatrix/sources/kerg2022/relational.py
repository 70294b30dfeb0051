"""Kerg 2022 on relational networks (chapters 5 and 7, appendix C): numbered items."""

from __future__ import annotations

from separatrix.sources.document import Item

ITEMS: tuple[Item, ...] = (
    Item("figure", "5-1", "chapter 5", "relational tasks as pictures", (), "a diagram, it states nothing"),
    Item("figure", "5-2", "chapter 5", "the relational architecture as a diagram", (), "a diagram, it states nothing"),
    Item(
        "table",
        "5-1",
        "chapter 5",
        "accuracies on relational games out of distribution",
        (),
        "open: relational networks are to come",
    ),
    Item("figure", "5-3", "chapter 5", "accuracies on relational tasks", (), "open: relational networks are to come"),
    Item(
        "figure", "5-4", "chapter 5", "accuracies on the four basic tasks", (), "open: relational networks are to come"
    ),
    Item("figure", "5-5", "chapter 5", "accuracies with unseen relations", (), "open: relational networks are to come"),
    Item(
        "figure", "5-6", "chapter 5", "accuracies with spurious features", (), "open: relational networks are to come"
    ),
    Item("figure", "7-1", "chapter 7", "the comparison task as a picture", (), "a diagram, it states nothing"),
    Item("figure", "7-2", "chapter 7", "accuracies on comparison tasks", (), "open: relational networks are to come"),
    Item(
        "figure",
        "7-3",
        "chapter 7",
        "accuracies in the most extreme cases",
        (),
        "open: relational networks are to come",
    ),
    Item(
        "table",
        "C-1",
        "appendix C",
        "defaults of the relational experiments",
        (),
        "hyperparameters, a record and no statement",
    ),
    Item("table", "C-2", "appendix C", "additional baselines", (), "open: relational networks are to come"),
    Item("table", "C-3", "appendix C", "numbers of parameters", (), "open: relational networks are to come"),
    Item(
        "figure",
        "C-1",
        "appendix C",
        "identity rules with missing variations",
        (),
        "open: relational networks are to come",
    ),
    Item(
        "figure",
        "C-2",
        "appendix C",
        "distribution of ten with unseen permutations",
        (),
        "open: relational networks are to come",
    ),
    Item(
        "figure",
        "C-3",
        "appendix C",
        "regularised relational match to sample",
        (),
        "open: relational networks are to come",
    ),
    Item("figure", "C-4", "appendix C", "separated inputs", (), "open: relational networks are to come"),
    Item("figure", "C-5", "appendix C", "CoRelNet with a hidden layer", (), "open: relational networks are to come"),
    Item("figure", "C-6", "appendix C", "basic tasks over the full range", (), "open: relational networks are to come"),
    Item(
        "figure",
        "C-7",
        "appendix C",
        "concatenated inputs over the full range",
        (),
        "open: relational networks are to come",
    ),
    Item(
        "figure",
        "C-8",
        "appendix C",
        "random encoders over the full range",
        (),
        "open: relational networks are to come",
    ),
    Item("figure", "C-9", "appendix C", "symmetry over the full range", (), "open: relational networks are to come"),
    Item(
        "figure",
        "C-10",
        "appendix C",
        "unseen relations over the full range",
        (),
        "open: relational networks are to come",
    ),
    Item(
        "figure",
        "C-11",
        "appendix C",
        "unseen relations with random encoders",
        (),
        "open: relational networks are to come",
    ),
    Item(
        "figure",
        "C-12",
        "appendix C",
        "relational only against relational and sensory",
        (),
        "open: relational networks are to come",
    ),
    Item("figure", "C-13", "appendix C", "further baselines", (), "open: relational networks are to come"),
)
