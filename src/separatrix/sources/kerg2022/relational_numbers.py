"""Numbers that the tables of kerg2022 on relational networks print."""

from __future__ import annotations

PARAMETERS: dict[str, dict[str, int]] = {
    "same_diff": {"CoRelNet": 200_418, "CoRelNet-nhid": 1_910_760, "ESBN": 1_910_757},
    "rmts": {"CoRelNet": 205_026, "CoRelNet-nhid": 1_910_754, "ESBN": 1_910_757},
    "dist3": {"CoRelNet": 211_684, "CoRelNet-nhid": 1_911_784, "ESBN": 1_911_783},
    "identity_rules": {"CoRelNet": 211_684, "CoRelNet-nhid": 1_911_784, "ESBN": 1_911_783},
    "same_diff6": {"CoRelNet": 205_026, "CoRelNet-nhid": 1_910_760, "ESBN": 1_910_757},
    "rmts3": {"CoRelNet": 211_170, "CoRelNet-nhid": 1_910_754, "ESBN": 1_910_757},
    "identity_rules4": {"CoRelNet": 223_974, "CoRelNet-nhid": 1_912_808, "ESBN": 1_912_809},
}
"""Appendix C, Table 3: parameters by task."""

NETWORKS = ("CoRelNet", "CoRelNet-T", "ESBN", "PrediNet", "Transformer", "MNM", "LSTM", "NTM", "RN")

GAMES: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {
    ("same", "hexominoes"): (
        (94.7, 5.4),
        (98.7, 0.5),
        (60.9, 18.0),
        (99.1, 0.5),
        (96.3, 3.6),
        (97.3, 1.5),
        (96.4, 1.6),
        (97.2, 1.7),
        (92.9, 2.8),
    ),
    ("same", "stripes"): (
        (90.4, 9.0),
        (98.4, 0.6),
        (60.5, 17.0),
        (97.7, 1.5),
        (93.6, 4.5),
        (95.5, 2.0),
        (90.3, 6.4),
        (93.4, 5.3),
        (83.7, 10.2),
    ),
    ("between", "hexominoes"): (
        (96.6, 2.2),
        (91.9, 3.3),
        (79.5, 2.7),
        (94.4, 3.6),
        (90.9, 4.2),
        (93.6, 2.3),
        (94.9, 3.3),
        (96.3, 0.7),
        (73.6, 8.2),
    ),
    ("between", "stripes"): (
        (93.1, 5.4),
        (87.0, 4.7),
        (82.5, 4.5),
        (92.4, 5.4),
        (87.5, 6.4),
        (90.2, 5.2),
        (91.7, 4.5),
        (93.5, 2.5),
        (54.5, 5.7),
    ),
    ("occurs", "hexominoes"): (
        (96.2, 2.2),
        (91.6, 4.6),
        (74.3, 0.9),
        (92.9, 3.3),
        (95.9, 2.4),
        (84.9, 2.8),
        (92.2, 2.4),
        (93.5, 8.1),
        (71.2, 6.6),
    ),
    ("occurs", "stripes"): (
        (88.7, 5.3),
        (79.3, 12.1),
        (73.3, 0.9),
        (87.4, 6.5),
        (88.7, 5.4),
        (77.0, 4.5),
        (79.8, 10.0),
        (87.1, 11.0),
        (54.6, 4.0),
    ),
    ("xoccurs", "hexominoes"): (
        (92.2, 6.4),
        (91.7, 6.9),
        (63.0, 0.8),
        (67.2, 8.7),
        (75.1, 11.9),
        (73.8, 6.6),
        (79.1, 2.8),
        (84.2, 5.0),
        (65.7, 5.5),
    ),
    ("xoccurs", "stripes"): (
        (83.6, 10.9),
        (85.4, 6.4),
        (64.7, 2.1),
        (61.3, 6.3),
        (69.4, 13.0),
        (70.6, 6.2),
        (77.2, 5.9),
        (81.7, 5.8),
        (61.7, 7.4),
    ),
    ("row_matching", "hexominoes"): (
        (97.7, 0.8),
        (95.4, 5.1),
        (81.1, 2.7),
        (50.3, 0.5),
        (50.3, 0.6),
        (49.9, 0.3),
        (50.1, 0.6),
        (50.2, 0.5),
        (50.5, 0.3),
    ),
    ("row_matching", "stripes"): (
        (94.8, 1.3),
        (90.5, 5.2),
        (76.8, 4.3),
        (50.5, 0.5),
        (50.4, 0.5),
        (49.8, 0.6),
        (50.2, 0.5),
        (49.9, 0.5),
        (50.4, 0.4),
    ),
    ("colour_shape", "hexominoes"): (
        (47.2, 3.7),
        (49.6, 0.8),
        (31.2, 10.1),
        (74.9, 10.6),
        (89.1, 2.9),
        (75.7, 12.1),
        (80.1, 7.0),
        (88.0, 2.4),
        (77.5, 9.2),
    ),
    ("left_of", "hexominoes"): (
        (99.2, 0.7),
        (97.6, 1.2),
        (49.9, 0.3),
        (94.9, 0.9),
        (96.0, 1.9),
        (97.5, 1.2),
        (97.2, 1.2),
        (97.5, 0.9),
        (51.0, 2.1),
    ),
}
"""Chapter 5, Table 1 and appendix C, Table 2: accuracy in per cent, mean and standard deviation of 10 seeds.

By rule and family, in the order of ``NETWORKS``.
"""


def printed_accuracy(rule: str, family: str, network: str) -> tuple[float, float] | None:
    """Mean and standard deviation as shares, if the tables print them.

    Example:
        >>> printed_accuracy("same", "stripes", "ESBN")
        (0.605, 0.17)
    """
    if (rule, family) not in GAMES or network not in NETWORKS:
        return None
    mean, deviation = GAMES[rule, family][NETWORKS.index(network)]
    return mean / 100, deviation / 100
