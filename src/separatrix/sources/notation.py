"""The dictionary of notation: symbols of the documents, our argument names, and what they mean.

One name has one meaning, or one meaning per room where a document's letter leaves no choice (``tau``). The tests
compare the dictionary with the signatures of all public functions: a name that five of them use stands here, and a
name that stands here is used with the types given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import final

from separatrix.core.names import suggest_options

NUMBER = ("float", "int", "Tensor", "Float", "Scalar", "ArrayLike", "Numbers", "Any", "object")
COUNT = ("int", "float", "Tensor", "Numbers")
ARRAY = ("Tensor", "Float", "Complex", "Shaped", "Int", "ArrayLike", "Any", "object", "Sequence", "float")
NAMED_ARRAY = (*ARRAY, "Inputs", "Outputs", "Square")
"""With the names under which a module writes the shape of several arguments once."""
TEXT = ("str", "object")


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Term:
    """An argument name and what it stands for.

    Args:
        name: as in the signatures.
        meaning: in words.
        types: names that annotations of the argument are made of; ``*`` stands for anything (``*Flow``).
        symbols: the letter of each document that has one, as LaTeX.
        rooms: where the name has this meaning; everywhere if left out.
    """

    name: str
    meaning: str
    types: tuple[str, ...]
    symbols: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rooms: tuple[str, ...] = ("",)


ATTENTION = ("theory.attention", "dynamics", "matrices.attention_instances", "diagnose.attention")
LEARNING = ("theory.learning", "matrices.balance", "diagnose.balance", "dynamics.flows", "advise")
EQUILIBRIUM = ("theory.equilibrium_networks", "theory.free_probability", "matrices.ensembles", "nn", "advise")
STATE = (*ARRAY, "State", "Mapping", "str", "TangentKernel", "nn", "Module")

NOTATION: tuple[Term, ...] = (
    # self-attention
    Term("value", "value matrix (d, d)", ARRAY, {"altafini2025": "V"}, ATTENTION),
    Term("values", "value matrices of several heads (h, d, d)", ARRAY, {"altafini2025": "V_h"}, ("theory.attention",)),
    Term("coupling", "query' key (d, d), all that attention knows of the two", ARRAY, {"altafini2025": "Q^T K"}),
    Term("query", "query projection (m, d)", ARRAY, {"altafini2025": "Q"}),
    Term("key", "key projection (m, d)", ARRAY, {"altafini2025": "K"}, ATTENTION),
    Term("beta", "inverse temperature of the softmax; 1 in the document", NUMBER, rooms=ATTENTION),
    Term(
        "betas",
        "increasing inverse temperatures of the softmax",
        ("object", "Sequence", "float"),
        rooms=("diagnose.attention", "dynamics.equilibria", "report.figures.attention"),
    ),
    Term("n_tokens", "number of tokens", COUNT, {"altafini2025": "n"}),
    Term("n1", "tokens at +v_k", COUNT, {"altafini2025": "n_1"}),
    Term("n2", "tokens at -v_k", COUNT, {"altafini2025": "n_2"}),
    Term(
        "k", "number of an eigenvalue of value, from 0 in descending order", ("int",), {"altafini2025": "k"}, ATTENTION
    ),
    Term(
        "eigenvalues",
        "eigenvalues, of value in descending order",
        ARRAY,
        {"altafini2025": r"\lambda_1, \dots, \lambda_d"},
    ),
    Term("strength", "logit of a token with itself, beta v' M v", NUMBER, rooms=("theory.attention",)),
    Term("signs", "+1 or -1 for every token", ARRAY, rooms=("theory.attention",)),
    Term("tokens", "unit vectors (..., n, d)", ARRAY, {"altafini2025": r"\mathbf{x}_i"}),
    Term("x", "tokens, or the state of a flow", ARRAY, {"altafini2025": r"\mathbf{x}"}, ("dynamics",)),
    Term("x0", "where a trajectory starts", ARRAY, {"altafini2025": r"\mathbf{x}(0)"}),
    Term("sizes", "how many tokens sit at each place, or sizes to look at", (*ARRAY, "Iterable", "int")),
    Term("bias", "added to the logits, or after a product", (*ARRAY, "bool")),
    Term("step", "length or number of a step", NUMBER),
    Term("flow", "what moves: dx/dt = velocity(x)", ("*Flow",)),
    Term("duration", "how long a flow runs", NUMBER),
    Term("times", "when states are wanted, ascending", ARRAY),
    # equilibrium networks and random matrices
    Term("weight_var", "E tr W'W: variance of an entry times the width", NUMBER, {"agarwala2022": "V"}),
    Term(
        "input_var",
        "variance of an input coordinate; of white inputs, corr_xx = input_var I",
        NUMBER,
        {"agarwala2022": r"\sigma_x^2"},
    ),
    Term("input_mean", "mean of an input coordinate", NUMBER),
    Term("width", "number of units of a layer", ("int",), {"agarwala2022": "N"}, EQUILIBRIUM),
    Term(
        "ensemble",
        "family of random matrices, as an object or by name",
        ("*Ensemble", "*Family", "str"),
    ),
    Term(
        "ensemble",
        "what draws the instances of a census, or the instances themselves",
        ("Sampler", "Flows"),
        rooms=("dynamics.attractors",),
    ),
    Term(
        "phi",
        "activation, as an object, a name or a function",
        ("str", "Activation", "Pointwise", "Callable", "Tensor"),
        {"agarwala2022": r"\phi"},
    ),
    Term("tau", "correlation of W_ij and W_ji", ("float",), rooms=("theory.free_probability", "matrices.ensembles")),
    Term("slopes", "slopes of the activation, the diagonal D", (*ARRAY, "Discrete"), {"agarwala2022": r"\phi'(h)"}),
    Term("weights", "probabilities of the values of a law", ARRAY, rooms=("theory.free_probability",)),
    Term("values", "positions of the atoms of a law", ARRAY, rooms=("theory.free_probability",)),
    Term("z", "state of an equilibrium network", (*ARRAY, "State"), {"agarwala2022": "z"}, ("nn", "dynamics")),
    Term("z", "complex argument of a transform", ARRAY, {"agarwala2022": "z"}, ("theory.free_probability",)),
    Term("x", "input of an equilibrium network", ARRAY, {"agarwala2022": "x"}, ("nn", "theory.free_probability")),
    Term(
        "cell",
        "the map z -> f(z, x) of a layer; of a theory, where the input enters",
        ("Module", "nn", "Callable", "Any", "Injection"),
        rooms=EQUILIBRIUM,
    ),
    Term("fixed_point_map", "the map whose fixed point is sought", ("FixedPointMap", "*Map", "Callable", "Tensor")),
    Term("solver", "method that finds an equilibrium, as an object or by name", ("*Solver", "Any", "str")),
    Term(
        "method",
        "how an equilibrium is found, a motion followed or a course of learning computed; an object or its name",
        ("*Solver", "*Method", "Tableau", "Any", "str"),
    ),
    Term("low", "lower end of an interval", (*NUMBER, "_Values")),
    Term("high", "upper end of an interval", (*NUMBER, "_Values")),
    Term("tol", "accuracy asked for", NUMBER),
    Term("rtol", "accuracy asked for, relative to the size of what is computed", NUMBER),
    Term("atol", "accuracy asked for, absolute", NUMBER),
    Term("max_steps", "most steps that may be taken", ("int",)),
    Term("stop", "whether a residual counts absolutely or relatively", ("Literal",), rooms=("dynamics.solve",)),
    Term("divergence", "growth of the residual that counts as divergence", ("float",)),
    # learning in linear networks
    Term("balance", "w2'w2 - w1w1' = balance I", (*NUMBER, "Mapping", "str"), {"anguita2024": r"\lambda"}),
    Term("w1", "first layer (n_hidden, n_in)", NAMED_ARRAY, {"anguita2024": "W_1"}),
    Term("w2", "second layer (n_out, n_hidden)", NAMED_ARRAY, {"anguita2024": "W_2"}),
    Term("corr_yx", "input-output correlation Y X' / P", NAMED_ARRAY, {"anguita2024": r"\tilde\Sigma^{yx}"}),
    Term(
        "corr_xx",
        "input correlation X X' / P; the identity if the inputs are white",
        ARRAY,
        {"anguita2024": r"\tilde\Sigma^{xx}"},
    ),
    Term("task_s", "singular values of the task", NUMBER, {"anguita2024": r"s_\alpha"}),
    Term(
        "tau",
        "time constant, one over the learning rate",
        NUMBER,
        {"anguita2024": r"\tau"},
        ("theory.learning", "dynamics", "advise"),
    ),
    Term(
        "strength",
        "singular value of the product along one mode",
        NUMBER,
        {"anguita2024": r"a_\alpha"},
        ("theory.learning",),
    ),
    Term("betas", "decay of Adam's two averages", ("tuple", "float"), rooms=("dynamics.flows",)),
    Term("product", "the network function w2 w1", ARRAY, {"anguita2024": "W_2 W_1"}),
    Term("t", "time since the start of learning", NUMBER, {"anguita2024": "t"}),
    Term("n_in", "inputs", ("int",), {"anguita2024": "n_i"}),
    Term("n_hidden", "hidden units", ("int",), {"anguita2024": "n_h"}),
    Term("n_out", "outputs", ("int",), {"anguita2024": "n_o"}),
    Term(
        "first", "representation of the inputs, w1'w1", NAMED_ARRAY, {"anguita2024": "W_1^T W_1"}, ("theory.learning",)
    ),
    Term(
        "second",
        "representation of the outputs, w2 w2'",
        NAMED_ARRAY,
        {"anguita2024": "W_2 W_2^T"},
        ("theory.learning",),
    ),
    Term(
        "first",
        "the first of two",
        ("*",),
        rooms=("matrices", "diagnose", "dynamics", "training", "theory.free_probability"),
    ),
    Term(
        "second",
        "the second of two",
        ("*",),
        rooms=("matrices", "diagnose", "dynamics", "training", "theory.free_probability", "theory.attention"),
    ),
    Term("x", "samples as rows (p, features)", ARRAY, {"anguita2024": "X^T"}, ("theory.learning", "diagnose")),
    Term(
        "start",
        "where learning or a search starts: strength, product or direction",
        NUMBER,
        rooms=("theory", "dynamics.spectra"),
    ),
    Term("weights", "importance of the old and of the new task", ("tuple", "float"), rooms=("theory.learning",)),
    Term("weights", "weights between the two groups of tokens", ("BipartiteWeights",), rooms=("theory.attention",)),
    Term("scale", "size of random weights, a factor", ("float", "str"), rooms=("matrices", "theory")),
    Term("lr", "learning rate", (*NUMBER, "Literal")),
    Term("loss", "what is minimised, by name or as a function", ("Loss",)),
    Term("optimiser", "by name, or an optimiser of torch", ("str", "Literal", "torch", "optim", "*Optimi*er")),
    Term("pairs", "layer pairs to look at, or auto", ("Pairs", "tuple", "LayerPair")),
    Term("rotary", "how rotary embeddings pair dimensions", ("str",)),
    Term("output", "takes a model's output and returns the prediction", ("Pick",)),
    Term("inputs", "a batch for the model, samples first", ARRAY),
    Term("before", "at the start of training: a state, a model or a kernel", STATE, rooms=("diagnose.regime",)),
    Term("after", "at the end of training: a state, a model or a kernel", STATE, rooms=("diagnose.regime",)),
    Term("data", "inputs and targets", ("tuple", "Any"), rooms=("diagnose",)),
    Term("model", "any torch module", ("nn", "Module", "Any")),
    Term("layer", "a layer of a model", ("*Layer", "Layer", "str", "nn", "Module", "Linear")),
    # recurrence
    Term("n_units", "number of units of a recurrent network", ("int",), {"kerg2022": "N"}),
    Term("noise_var", "variance of the noise per unit and step", ("float",), {"kerg2022": r"\epsilon"}),
    Term("recurrent", "recurrent matrix", ARRAY, {"kerg2022": "W"}),
    Term(
        "source",
        "a model, its state dict or its file",
        ("nn", "Module", "Mapping", "str", "Path", "Tensor", "RecurrentSource"),
        rooms=("diagnose",),
    ),
    Term("source", "direction by which the signal enters", ARRAY, {"kerg2022": "v"}, ("matrices.memory",)),
    Term("feedforward", "strictly lower-triangular part of the Schur form", ARRAY, {"kerg2022": r"\Theta"}),
    Term("alpha", "squared weight of a delay line", ARRAY, {"kerg2022": r"\alpha"}, ("theory.recurrence",)),
    Term("eigenvalue", "of a recurrent matrix", (*ARRAY, "complex", "Numbers"), {"kerg2022": r"\lambda"}),
    Term("t", "when a state was made, from 1", ("int",), {"kerg2022": "t"}, ("theory.recurrence",)),
    Term("k", "how many steps later", ("int",), {"kerg2022": "k"}, ("theory.recurrence",)),
    Term("batch", "inputs, batch first", ARRAY, rooms=("diagnose.recurrence",)),
    Term(
        "loss",
        "what is minimised, by name or as a function of the prediction, or of it and the target",
        ("Loss", "Callable", "Tensor"),
        rooms=("diagnose.examination",),
    ),
    Term("target", "what the loss compares the prediction with", ("Any",), rooms=("diagnose.examination",)),
    Term("n", "how many samples or probes stand behind a number", ("int",), rooms=("diagnose.findings",)),
    Term("loss", "of hidden states, as a function", ("Callable", "Tensor"), rooms=("diagnose.recurrence.paths",)),
    Term("n_heads", "heads of an attention layer", ("int",)),
    Term("mix", "a and b of s = a h + b c", ("tuple", "float", "int", "Literal")),
    Term(
        "weights",
        "of attention",
        (*ARRAY, "Num", "int"),
        {"kerg2022": r"\alpha_{i,t}"},
        ("nn.memory", "theory.recurrence"),
    ),
    Term(
        "hidden", "hidden states that are attended to", ARRAY, {"kerg2022": "h_i"}, ("nn.memory", "theory.recurrence")
    ),
    Term("n_buffer", "how many of the newest states are in memory in any case", ("int",), {"kerg2022": r"\nu"}),
    Term("n_relevant", "how many older states are kept", ("int",), {"kerg2022": r"\rho"}),
    Term(
        "normalise", "how scores of attention are made comparable", ("str", "Literal"), rooms=("nn.memory", "nn.cache")
    ),
    Term("memory", "whether the way back recomputes or stores", ("Literal",), rooms=("nn.memory",)),
    Term("check", "whether inputs that are not finite are refused", ("bool",), rooms=("nn.memory",)),
    Term("check", "whether a model is compared with itself first", ("bool",), rooms=("nn.cache",)),
    Term("normalise", "whether tokens are put on the sphere first", ("bool",), rooms=("dynamics",)),
    Term("memory", "how many earlier steps a solver uses", ("int",), rooms=("dynamics.solve",)),
    Term(
        "check", "a test of each instance, or of the solution", ("Check", "float"), rooms=("dynamics", "nn.equilibrium")
    ),
    Term(
        "hidden",
        "width of the layer in between",
        ("int",),
        rooms=("matrices.ensembles", "nn.equilibrium", "nn.relational", "training"),
    ),
    Term("readout", "what an answer is made of", (*ARRAY, "Literal")),
    Term("matrix", "any square matrix, batched", ARRAY),
    Term("batch_dims", "how many leading axes of a state are a batch", ("int",)),
    Term("n_steps", "number of steps", ("int",)),
    # words of the house
    Term("generator", "source of randomness; the global one is never used", ("torch", "Generator")),
    Term("seed", "number from which generators are made", ("int",)),
    Term("dtype", "of what is made", ("torch", "dtype")),
    Term("batch", "shape or length of the leading axes", ("tuple", "int", "torch", "Size")),
    Term("path", "a file or folder; of a random stream, words that name it", ("str", "int", "Path")),
    Term("name", "of a thing, for messages and lookups", (*TEXT, "Dataset", "*Ensemble", "Backend", "Design")),
    Term("title", "heading of a figure or record", ("str",)),
    Term(
        "kind",
        "what sort of thing, as errors and tables say it",
        ("str", "*Kind", "Optimiser", "Literal", "type", "Normalisation"),
    ),
    Term("value", "anything that is checked or shown", ("Any", "float", "object"), rooms=("core",)),
    Term("given", "what a user gave: an object or its name", ("object",)),
    Term("known", "what is known already", ("Iterable", "Mapping", "str", "Thing", "Equilibrium", "RunReport")),
    Term("target", "the layer or tensor that is filled in place", ("Target",), rooms=("matrices.ensembles",)),
    Term("width", "of a figure or line", ("int", "float"), rooms=("report", "core")),
    Term("rows", "rows of a table", ("Sequence", "Mapping", "Iterable", "tuple", "Row", "str", "Any")),
    Term(
        "only",
        "columns, and the entry that a row must hold there to count",
        ("str", "float", "int", "bool", "tuple"),
        rooms=("lab.experiment",),
    ),
    Term("values", "one number per seed", ("Sequence", "float"), rooms=("training",)),
    Term("values", "what is expected from each state on", ARRAY, rooms=("training.reinforcement",)),
    Term("step", "number of an update", ("int",), rooms=("training",)),
    Term("settings", "lengths and rates of a training", ("*Settings",), rooms=("training",)),
    Term("figure", "a figure of matplotlib, or axes of one", ("Figure", "Axes"), rooms=("report",)),
    # experiments
    Term("experiment", "an experiment, or its name", ("Experiment", "str")),
    Term(
        "summary",
        "what the cells of a run condense to",
        ("*Summary", "type", "dict", "str", "Any"),
        rooms=("lab", "report"),
    ),
    Term("summary", "one sentence on a formula", ("str",), rooms=("core",)),
    Term("store", "records of experiments", ("Store",)),
    Term("scale", "size of an experiment: smoke, laptop or paper", ("str", "Scale"), rooms=("lab",)),
    Term("cell", "one unit of work of an experiment", ("Cell",), rooms=("lab",)),
    Term(
        "experiments",
        "several experiments, or a register of them by name",
        ("Iterable", "Mapping", "Experiment", "str", "Collection"),
    ),
    Term("folder", "where files are or go", ("Path", "str"), rooms=("lab", "report", "tasks")),
    Term("params", "parameters of a run", ("Params", "dict", "str", "Any"), rooms=("lab",)),
    Term("memory", "most bytes that a cell may hold, in GB", ("float",), rooms=("lab",)),
    Term("sizes", "what is known of the sizes of records", ("_Prior",), rooms=("lab",)),
    Term("x", "parameter along the first axis of a picture", ("str",), rooms=("report",)),
    Term("reason", "why, in words", ("str",)),
    Term("says", "a statement in our own words", ("str",), rooms=("lab", "sources")),
    Term("document", "key of a source document", ("str",)),
    Term("place", "equation, theorem, figure or table in a document", ("str",)),
    Term("version", "number of an experiment's or data set's state", ("int", "str")),
    Term("key", "identifier", ("str", "Document", "Erratum"), rooms=("lab", "sources")),
    Term("column", "of a table of results, by its name", ("str", "tuple"), rooms=("lab",)),
    Term("data", "data sets and their digests", ("Mapping", "str", "tuple"), rooms=("lab",)),
    Term("start", "where a part of a record starts", ("int", "float"), rooms=("lab", "dynamics.attractors")),
    Term("start", "name of a start, for tables", ("str",), rooms=("diagnose",)),
    # recurrent networks
    Term("start", "initial orthogonal matrix, by name", ("str",), rooms=("nn",)),
    Term("step", "formula of one step of a recurrent network", ("AbstractStep",), rooms=("nn.recurrent",)),
    Term("input_size", "features of the input", ("int",)),
    Term("hidden_size", "units of a recurrent network", ("int",), {"kerg2022": "N"}),
    Term("batch_first", "whether the batch is the first axis, before time", ("bool",)),
    Term("map", "parametrisation of orthogonal matrices, or its name", ("str", "AbstractOrthogonalMap")),
    Term("n", "size of a square matrix", ("int",), {"kerg2022": "N"}, ("nn.orthogonal",)),
    Term("nonlinearity", "activation of a recurrent network, by name", ("str", "Literal")),
    Term("states", "states of a recurrent network, or of what moves", (*ARRAY, "State", "Trace", "None")),
    Term("n_starts", "how many starts a search or a census makes", ("int",)),
    Term("damping", "friction of the motion", ("float",), rooms=("nn.recurrent",)),
    Term("damping", "share of a step that is taken", ("float",), rooms=("dynamics", "nn.equilibrium")),
    # relational networks
    Term("seq_len", "objects of a problem", ("int",), {"kerg2022": "T"}),
    Term("n_answers", "answers to choose from", ("int",)),
    Term("image_size", "pixels along a side of a picture", ("int",)),
    Term("normalise", "how features are normalised over positions", ("Normalisation",), rooms=("nn.relational",)),
    Term("segments", "positions that are normalised together", ("Segments",)),
    Term("encoder", "whether the encoder of pictures is learned or frozen", ("EncoderMode",), rooms=("nn.relational",)),
    Term(
        "encoder", "module that turns pictures into features", ("nn", "Module", "Callable", "Any"), rooms=("training",)
    ),
    Term("l1", "weight of the absolute values of a layer behind the encoder", ("float",)),
    Term(
        "symmetric", "whether a pair's similarity is that of the pair turned round", ("bool",), rooms=("nn.relational",)
    ),
    Term("holdout", "objects that training never sees", ("int",), {"kerg2022": "m"}),
    Term("glyph_set", "pictures that objects are taken from", ("GlyphSet",)),
    Term("n", "how many, of objects or of pictures", ("int",), rooms=("tasks.relational",)),
    Term("part", "which split: training, test or a file's part", ("Part", "str")),
    Term("task", "matrix that a linear network has to learn", ARRAY, {"anguita2024": "Y X^T"}, ("theory.learning",)),
    Term("task", "what is to be learned", ("*Task", "Callable", "int", "PictureProblems"), rooms=("tasks", "training")),
    # data and further words
    Term("symbols", "of a text, or of the documents", ("Int", "Tensor", "Mapping", "Sequence", "tuple", "str")),
    Term("download", "whether missing files may be fetched", ("bool",)),
    Term("options", "choices there are, or further options by name", ("Any", "Iterable", "str")),
    Term("weights", "tensors that a step shares over time", ("Weights",), rooms=("nn.recurrent",)),
)


def meaning_in(name: str, module: str) -> Term | None:
    """The term that an argument of a function stands for, the most particular room first.

    Args:
        name: of the argument.
        module: where the function is defined, from the room on (``theory.learning.kernel``).
    """
    fitting = [
        (room, term)
        for term in NOTATION
        if term.name == name
        for room in term.rooms
        if not room or module == room or module.startswith(f"{room}.")
    ]
    return max(fitting, key=lambda found: len(found[0]))[1] if fitting else None


def notation_page() -> str:
    """The dictionary as a page in Markdown: symbols of each document first, then our names in order."""
    from .catalogue import documents

    lines = ["# Notation", "", "Symbols of the documents and the argument names that stand for them here.", ""]
    for key, document in documents().items():
        rows = [
            (f"${term.symbols[key]}$", f"`{term.name}`", term.meaning, _where(term))
            for term in NOTATION
            if key in term.symbols
        ]
        lines += [f"## {document.title} (`{key}`)", "", *_table(("symbol", "argument", "meaning", "where"), rows), ""]
    lines += ["## All names", "", "One name, one meaning; where a room has its own, it is named.", ""]
    ordered = sorted(NOTATION, key=lambda term: term.name)
    names = [(f"`{term.name}`", term.meaning, _where(term)) for term in ordered]
    return "\n".join([*lines, *_table(("argument", "meaning", "where"), names)]) + "\n"


def _where(term: Term) -> str:
    return ", ".join(f"`{room}`" for room in term.rooms) if term.rooms != ("",) else "everywhere"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return lines + ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]
