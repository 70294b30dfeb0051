from .solution import EquilibriumSolution as EquilibriumSolution
