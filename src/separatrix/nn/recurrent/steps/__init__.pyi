from .modrelu import modrelu as modrelu
from .scan import scan as scan
from .step import AbstractKernel as AbstractKernel, AbstractStep as AbstractStep
