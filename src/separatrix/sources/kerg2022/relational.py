"""Kerg 2022 on relational networks (chapters 5 and 7, appendix C): errata and numbered items."""

from __future__ import annotations

from separatrix.sources.document import Erratum, Item

ERRATA: tuple[Erratum, ...] = (
    Erratum(
        key="kerg2022-flattened-relations",
        place="section 5.5, CoRelNet; appendix C, Table 3",
        printed="R is a softmax over whole rows, and all of it is flattened into the decoder",
        correct="a softmax over j <= i, of which the T (T + 1) / 2 entries with j <= i are read",
        evidence="200,418 parameters at T = 2 need 3 inputs, 205,026 at T = 6 need 21, 211,684 and 211,170 at T = 9 "
        "need 45, 223,974 at T = 13 need 91 (counted on the networks as built)",
    ),
    Erratum(
        key="kerg2022-relation-symmetry",
        place="section 5.6, Symmetry",
        printed="the relation matrix is symmetric",
        correct="only the similarities before mask and softmax are; the first row of R is 1 and each row has one "
        "redundant entry, so T (T - 1) / 2 numbers inform",
        evidence="follows from the parameter table; rows sum to 1 and R is lower triangular (tests of nn.relational)",
    ),
    Erratum(
        key="kerg2022-relational-optimiser",
        place="appendix C, Table 1",
        printed="optimiser: gradient descent at 5e-4",
        correct="Adam at 5e-4, as the public code has it",
        evidence="identity rules, 5 shapes in training, random encoder, 400 steps, 3 seeds: Adam 100.0 %, plain "
        "gradient descent 24.3 % of 4 answers",
    ),
    Erratum(
        key="kerg2022-matched-size",
        place="appendix C, Table 3, CoRelNet-nhid on same/different 6",
        printed="1,910,760",
        correct="1,910,754, as for match to sample",
        evidence="each hidden unit adds 24 parameters, and 1,910,760 would need 71,328.25 of them",
    ),
    Erratum(
        key="kerg2022-corelnet-t",
        place="section 5.5, CoRelNet-T; appendix C, Table 1",
        printed="rows of R are tokens, combined with position vectors in a transformer of dimension 512",
        correct="tokens are R P, position vectors mixed by R, of 8 numbers; one learned query of 8 attends to them; "
        "512 is the width of queries, keys and values together",
        evidence="public code; 221,866 to 222,982 parameters are used, the public class allocates about 23,000 more",
    ),
    Erratum(
        key="kerg2022-relational-images",
        place="appendix C, Table 1",
        printed="images of 36 x 36 x 3 for games; hyperparameters otherwise those of Webb et al.",
        correct="cells of 12 x 12 x 3 for games, three equal channels for glyphs (Webb et al. have one); problems are "
        "streamed in batches of 96 to 384, and the normalisation of match to sample is over the whole sequence",
        evidence="with one channel ESBN would have 1,909,733 parameters, the table has 1,910,757",
    ),
    Erratum(
        key="kerg2022-restricted-permutations",
        place="appendix C.4",
        printed="training shows permutations that preserve the set of the first N - 3 places, the test all others",
        correct="the public code does the opposite; both directions are built",
        evidence="at N = 10 there are 30,240 preserving permutations and 3,598,560 others",
    ),
    Erratum(
        key="kerg2022-symmetric-comparison",
        place="section 7.2",
        printed="a symmetric similarity cannot learn which of two objects is larger",
        correct="it can, through the trained shift of the normalisation, once the softmax is not saturated: with "
        "similarities divided by sqrt d it solves both comparison tasks; without the shift it cannot",
        evidence="300 steps, 5 shapes in training: temperature 1 50.0 %, divided by sqrt d 100.0 % on both tasks (6 "
        "seeds, kerg7-fig2), divided by sqrt d with gain and shift fixed 47 and 49 % (2 seeds)",
    ),
    Erratum(
        key="kerg2022-missing-words",
        place="section 5.6, unseen relations",
        printed="leaving out either ABAA or ABAB alone does not lower the accuracy of CoRelNet",
        correct="leaving out ABAB alone does: the word baca, which needs it, is then never answered rightly",
        evidence="decoder that is told which objects are equal, 5 seeds, 2500 steps: without abab baca 0.0 % and the "
        "other two words 100 %, as without both; the same for CoRelNet with a random encoder, 3 seeds; without abaa "
        "87 to 100 % by word and rising (kerg5-missing, kerg5-missing-frozen)",
    ),
    Erratum(
        key="kerg2022-dot-product",
        place="section 5.6, Symmetry",
        printed="a dot product always scores identical objects higher than different ones",
        correct="after the normalisation over positions; raw features of a random encoder violate it often",
        evidence="20 random encoders, 20,000 problems of identity rules: 37 % of rows with a repeated object with raw "
        "features, none after the normalisation",
    ),
    Erratum(
        key="kerg2022-triplets",
        place="section 5.4, Same/diff 6",
        printed="two triplets of the forms AAA, AAB, ABA or BAA are compared",
        correct="in the public data the triplets of a different pair are two forms of the same two objects, so that "
        "which objects occur never tells",
        evidence="public code; tasks as built (in every different pair the objects of one triplet are among those of "
        "the other)",
    ),
    Erratum(
        key="kerg2022-starred-predinet",
        place="chapter 5, Table 1",
        printed="PrediNet with a star and no note to it",
        correct="in both tables PrediNet is the version over a sequence of nine cells",
        evidence="public code; appendix C, Table 3 has no entry for it",
    ),
    Erratum(
        key="kerg2022-background-chapter",
        place="chapter 1, outline",
        printed="self-attention is background for the second article, in chapter 5",
        correct="the second article is chapter 4 (chapter 5 is the third)",
        evidence="the sentence before it and the table of contents",
    ),
    Erratum(
        key="kerg2022-largest-holdout",
        place="section 5.4",
        printed="95 held-out shapes are the extreme case of distribution of three and identity rules",
        correct="96 are possible: both need four shapes",
        evidence="tasks as built (make_task takes 96 and refuses 97)",
    ),
)

_NO_SENTENCE = "bars that no sentence states; run by its experiment, with claims of ours"


def _item(kind: str, number: str, place: str, says: str, *claims: str) -> Item:
    return Item(kind, number, place, says, claims)


ITEMS: tuple[Item, ...] = (
    Item("figure", "5-1", "chapter 5", "relational tasks as pictures", (), "a diagram, it states nothing"),
    Item("figure", "5-2", "chapter 5", "the relational architecture as a diagram", (), "a diagram, it states nothing"),
    _item(
        "table",
        "5-1",
        "chapter 5",
        "accuracies on relational games out of distribution",
        *(
            f"kerg2022-ch5-table1-{part}"
            for part in (
                "rows",
                "rows-transformer",
                "rows-predinet",
                "colour-shape",
                "colour-shape-esbn",
                "colour-shape-others",
                "left-of",
                "left-of-esbn",
            )
        ),
    ),
    _item(
        "figure",
        "5-3",
        "chapter 5",
        "accuracies on relational tasks",
        "kerg2022-ch5-fig3-relational",
        "kerg2022-ch5-fig3-others-fall",
        "kerg2022-ch5-fig3-pairs",
        "kerg2022-ch5-fig3-pairs-transformer",
        "kerg2022-ch5-fig3-pairs-predinet",
    ),
    _item(
        "figure",
        "5-4",
        "chapter 5",
        "accuracies on the four basic tasks: sensory features, symmetry, random encoders",
        "kerg2022-ch5-fig4-random-encoders",
        "kerg2022-ch5-fig4-sensory",
        "kerg2022-ch5-fig4-symmetry",
        "kerg2022-ch5-fig4-sensory-corelnet",
        "kerg2022-ch5-fig4-symmetry-corelnet",
        "kerg2022-ch5-encoders-learned",
        "kerg2022-ch5-encoders-frozen",
        "kerg2022-ch5-encoders-equal",
    ),
    _item(
        "figure",
        "5-5",
        "chapter 5",
        "accuracies with unseen relations",
        "kerg2022-ch5-fig5-near-perfect",
        *(f"kerg2022-ch5-fig5-better-than-{other}" for other in ("corelnet-t", "esbn", "predinet", "transformer")),
        "kerg2022-ch5-fig5-missing",
        "kerg2022-ch5-fig5-random",
    ),
    _item(
        "figure",
        "5-6",
        "chapter 5",
        "accuracies with spurious features",
        "kerg2022-ch5-fig6-random",
        "kerg2022-ch5-fig6-learned",
        "kerg2022-ch5-fig6-l1",
        *(f"kerg2022-ch5-fig6-{which}-corelnet" for which in ("random", "learned", "l1")),
    ),
    _item(
        "text",
        "dot products",
        "section 5.6",
        "identical objects always score higher than different ones",
        "kerg2022-ch5-dot-product",
    ),
    _item(
        "text",
        "missing words",
        "section 5.6",
        "leaving out one of two words alone does no harm",
        "kerg2022-ch5-missing-abaa",
        "kerg2022-ch5-missing-abab",
        "kerg2022-ch5-missing-frozen-abaa",
        "kerg2022-ch5-missing-frozen-abab",
    ),
    Item("figure", "7-1", "chapter 7", "the comparison task as a picture", (), "a diagram, it states nothing"),
    _item(
        "figure",
        "7-2",
        "chapter 7",
        "accuracies on comparison tasks",
        "kerg2022-ch7-fig2-diff",
        "kerg2022-ch7-fig2-symmetric",
        "kerg2022-ch7-fig2-asymmetric",
    ),
    _item(
        "figure",
        "7-3",
        "chapter 7",
        "CoRelNet-mix in the most extreme cases",
        "kerg2022-ch7-fig3-pairs",
        "kerg2022-ch7-fig3-choices",
    ),
    Item(
        "table",
        "C-1",
        "appendix C",
        "defaults of the relational experiments",
        (),
        "hyperparameters, a record and no statement",
    ),
    _item(
        "table",
        "C-2",
        "appendix C",
        "additional baselines",
        *(f"kerg2022-C-table2-{which}{end}" for which in ("rows", "left-of") for end in ("", "-short")),
    ),
    _item("table", "C-3", "appendix C", "numbers of parameters", "kerg2022-C-table3"),
    Item("figure", "C-1", "appendix C", "identity rules with training and test exchanged", (), _NO_SENTENCE),
    Item("figure", "C-2", "appendix C", "distribution of ten with unseen permutations", (), _NO_SENTENCE),
    _item(
        "figure",
        "C-3",
        "appendix C",
        "spurious features, network by network",
        "kerg2022-C-fig3-l1-corelnet",
        "kerg2022-C-fig3-l1-pairs",
    ),
    _item("figure", "C-4", "appendix C", "separated inputs", "kerg2022-C-fig4-corelnet", "kerg2022-C-fig4-others"),
    _item(
        "figure", "C-5", "appendix C", "CoRelNet as large as ESBN", "kerg2022-C-fig5-nhid", "kerg2022-C-fig5-nhid-basic"
    ),
    _item(
        "figure",
        "C-6",
        "appendix C",
        "basic tasks over the full range",
        "kerg2022-C-fig6-relational",
        "kerg2022-C-fig6-others-fall",
        "kerg2022-C-fig6-identity-rules",
        "kerg2022-C-fig6-identity-rules-fall",
    ),
    _item(
        "figure",
        "C-7",
        "appendix C",
        "concatenated inputs over the full range",
        "kerg2022-C-fig7-sensory",
        "kerg2022-C-fig7-dist3",
        "kerg2022-C-fig7-dist3-corelnet",
        "kerg2022-C-fig7-identity-rules-corelnet",
    ),
    _item(
        "figure",
        "C-8",
        "appendix C",
        "random encoders over the full range",
        "kerg2022-C-fig8-random",
        "kerg2022-C-fig8-random-corelnet",
    ),
    _item(
        "figure",
        "C-9",
        "appendix C",
        "symmetry over the full range",
        "kerg2022-C-fig9-symmetry",
        "kerg2022-C-fig9-symmetry-corelnet",
    ),
    _item(
        "figure",
        "C-10",
        "appendix C",
        "unseen relations over the full range",
        "kerg2022-C-fig10-corelnet",
        "kerg2022-C-fig10-corelnet-ends",
    ),
    _item(
        "figure",
        "C-11",
        "appendix C",
        "unseen relations with random encoders",
        "kerg2022-C-fig11-random",
        "kerg2022-C-fig11-random-rmts3",
    ),
    _item(
        "figure",
        "C-12",
        "appendix C",
        "relational only against relational and sensory",
        "kerg2022-C-fig12-cognitive",
        "kerg2022-C-fig12-games",
        "kerg2022-C-fig12-games-corelnet",
        "kerg2022-C-fig12-rmts3-corelnet",
    ),
    _item("figure", "C-13", "appendix C", "further baselines", "kerg2022-C-fig13-baselines", "kerg2022-C-fig13-pairs"),
)
