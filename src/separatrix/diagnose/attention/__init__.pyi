from .alignment import (
    Alignment as Alignment,
    Null as Null,
    alignments as alignments,
    dominant_subspace as dominant_subspace,
)
from .dynamics import (
    AttentionDiagnosis as AttentionDiagnosis,
    LayerDiagnosis as LayerDiagnosis,
    attention_dynamics as attention_dynamics,
)
from .frozen_flow import FrozenEnd as FrozenEnd, frozen_flow as frozen_flow
from .layer import AttentionLayer as AttentionLayer, Normaliser as Normaliser
from .phases import PhaseDiagram as PhaseDiagram, PhaseEnd as PhaseEnd, phase_diagram as phase_diagram
from .sources import AttentionLayers as AttentionLayers, attention_layers as attention_layers
from .spectra import (
    HeadPrediction as HeadPrediction,
    LayerSpectrum as LayerSpectrum,
    head_predictions as head_predictions,
    value_spectra as value_spectra,
)
from .stable_states import Multistability as Multistability, multistability as multistability
from .sweeps import BetaSweep as BetaSweep, SweptState as SweptState, beta_sweep as beta_sweep
from .token_geometry import Interval as Interval, TokenGeometry as TokenGeometry, token_geometry as token_geometry
