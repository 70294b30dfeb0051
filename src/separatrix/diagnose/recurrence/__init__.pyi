from .blocks import BlockMeasures as BlockMeasures, SchurPicture as SchurPicture
from .delta_rule import DeltaRuleSpectrum as DeltaRuleSpectrum, delta_rule_spectrum as delta_rule_spectrum
from .dependency import Dependency as Dependency
from .exponents import LyapunovSpectrum as LyapunovSpectrum, product_exponents as product_exponents
from .gradients import GradientFlow as GradientFlow
from .layer_report import LayerReport as LayerReport
from .linear import LinearRecurrence as LinearRecurrence
from .memory import LinearisedMemory as LinearisedMemory
from .paths import GradientPaths as GradientPaths, gradient_paths as gradient_paths
from .report import RecurrentReport as RecurrentReport, recurrent as recurrent
