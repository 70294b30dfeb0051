"""How a solve or an integration ended, one code per batch element."""

from __future__ import annotations

import enum


class Outcome(enum.IntEnum):
    """How one element of a batch ended. Only ``CONVERGED`` and ``CYCLE`` describe an attractor.

    ``COMPLETED`` is the end of a motion that was asked for up to a time, wherever it then stands.
    """

    CONVERGED = 0
    OUT_OF_STEPS = 1
    DIVERGED = 2
    NON_FINITE = 3
    CYCLE = 4
    STALLED = 5
    COMPLETED = 6
    NO_EQUILIBRIUM = 7

    @property
    def label(self) -> str:
        """Lower-case name with blanks, as shown to people."""
        return self.name.lower().replace("_", " ")

    @property
    def advice(self) -> str:
        """What a user can try next."""
        return _ADVICE[self]


_ADVICE = {
    Outcome.CONVERGED: "Nothing to do.",
    Outcome.OUT_OF_STEPS: "Raise max_steps, loosen tol, or check that an equilibrium exists.",
    Outcome.DIVERGED: "The map repels: lower the scale of the weights, damp the iteration, or use a Newton method.",
    Outcome.NON_FINITE: "The map produced NaN or infinity: check the input of this element.",
    Outcome.CYCLE: "The motion is periodic: ask for its period and Floquet exponents instead of an equilibrium.",
    Outcome.COMPLETED: "Nothing to do: the motion was followed to the time that was asked for.",
    Outcome.STALLED: "Rounding keeps the error above tol, or a motion returns to saddles: loosen tol, or use float64.",
    Outcome.NO_EQUILIBRIUM: "The state grows while the residual does not fall: there is no sign of an equilibrium.",
}
