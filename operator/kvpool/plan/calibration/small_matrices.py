"""Symmetric matrices of a few rows: eigenvalues by Jacobi's rotations, and what follows from them.

Source: Golub and Van Loan, "Matrix Computations", section 8.5. Plain lists: three constants need no library.
"""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Final

Rows = Sequence[Sequence[float]]

SWEEPS: Final = 50
NEGLIGIBLE: Final = 1e-14


def eigen(matrix: Rows) -> tuple[list[float], list[list[float]]]:
    """Eigenvalues of a symmetric matrix, and its eigenvectors as rows in the same order."""
    size = len(matrix)
    work = [list(row) for row in matrix]
    vectors = [[1.0 if row == column else 0.0 for column in range(size)] for row in range(size)]
    scale = max((abs(value) for row in work for value in row), default=0.0)
    for _ in range(SWEEPS):
        off = max((abs(work[row][column]) for row in range(size) for column in range(row)), default=0.0)
        if off <= NEGLIGIBLE * scale:
            break
        for row in range(size):
            for column in range(row + 1, size):
                _rotate(work, vectors, row, column)
    return [work[row][row] for row in range(size)], vectors


def condition(matrix: Rows) -> float:
    """Largest over smallest eigenvalue of a symmetric matrix that is not negative; infinite when singular."""
    values, _ = eigen(matrix)
    least, most = min(values), max(values)
    return inf if least <= most * NEGLIGIBLE else most / least


def inverse(matrix: Rows) -> list[list[float]]:
    """The inverse of a symmetric positive matrix.

    Raises:
        ZeroDivisionError: when it is singular.
    """
    values, vectors = eigen(matrix)
    size = len(matrix)
    return [
        [sum(vectors[k][row] * vectors[k][column] / values[k] for k in range(size)) for column in range(size)]
        for row in range(size)
    ]


def times(matrix: Rows, vector: Sequence[float]) -> list[float]:
    """Matrix times column."""
    return [sum(left * right for left, right in zip(row, vector, strict=True)) for row in matrix]


def _rotate(work: list[list[float]], vectors: list[list[float]], row: int, column: int) -> None:
    """Turn the plane of two axes so that their mixed term is zero."""
    mixed = work[row][column]
    if mixed == 0.0:
        return
    theta = (work[column][column] - work[row][row]) / (2 * mixed)
    tangent = (1 if theta >= 0 else -1) / (abs(theta) + sqrt(theta * theta + 1))
    cosine = 1 / sqrt(tangent * tangent + 1)
    sine = tangent * cosine
    for other in range(len(work)):
        first, second = work[other][row], work[other][column]
        work[other][row], work[other][column] = cosine * first - sine * second, sine * first + cosine * second
    for axes in (work, vectors):
        firsts, seconds = axes[row], axes[column]
        axes[row] = [cosine * a - sine * b for a, b in zip(firsts, seconds, strict=True)]
        axes[column] = [sine * a + cosine * b for a, b in zip(firsts, seconds, strict=True)]
