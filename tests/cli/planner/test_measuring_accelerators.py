"""Accelerators: measured where there is one, from a data sheet where one is named, else unknown."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import cast

import pytest

from kvpool.cli.planning.measuring import cuda
from kvpool.cli.planning.measuring.accelerator import (
    Accelerator,
    NoAcceleratorError,
    measure_accelerator,
)
from kvpool.plan.calibration.constants import Source
from tests.cli.planner.measured import by_name


class FakeCard:
    """Copies nothing, and counts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.driver = "for CUDA 13.0"
        self.copied = {"in": 0, "out": 0, "within": 0}

    def copy_in(self, size_bytes: int) -> None:
        self.copied["in"] += size_bytes
        ctypes.create_string_buffer(size_bytes // 64)

    def copy_out(self, size_bytes: int) -> None:
        self.copied["out"] += size_bytes
        ctypes.create_string_buffer(size_bytes // 64)

    def copy_within(self, size_bytes: int) -> None:
        self.copied["within"] += size_bytes


def opener(card: FakeCard) -> object:
    @contextmanager
    def opened(room_bytes: int) -> Iterator[Accelerator]:
        assert room_bytes == 1 << 30
        yield card

    return opened


def none_here(_: int) -> AbstractContextManager[Accelerator]:
    raise NoAcceleratorError("no accelerator can be measured: none is here")


def test_an_accelerator_is_measured_and_its_products_come_from_its_data_sheet() -> None:
    card = FakeCard("NVIDIA H200")
    found = by_name(measure_accelerator(opener(card), None, 0.06))  # type: ignore[arg-type]  # a fake
    assert {name: constant.source for name, constant in found.items()} == {
        "card.memory.rate": Source.MEASURED,
        "card.copy.in": Source.MEASURED,
        "card.copy.out": Source.MEASURED,
        "card.memory.bytes": Source.DATA_SHEET,
        "card.products.16bit": Source.DATA_SHEET,
        "card.products.8bit": Source.DATA_SHEET,
    }
    assert all(card.copied.values())
    assert "NVIDIA H200, driver for CUDA 13.0" in found["card.copy.in"].method
    assert found["card.memory.bytes"].value == 141e9


def test_an_accelerator_without_a_known_sheet_is_measured_all_the_same() -> None:
    found = by_name(measure_accelerator(opener(FakeCard("Shiny 9")), None, 0.06))  # type: ignore[arg-type]  # a fake
    assert found["card.memory.rate"].source is Source.MEASURED
    assert found["card.products.16bit"].source is Source.NOT_MEASURED
    assert "Shiny 9 is no card that is known here" in found["card.products.16bit"].reason


def test_without_an_accelerator_a_named_card_gives_its_data_sheet_and_says_so() -> None:
    found = by_name(measure_accelerator(none_here, "H200", 1))
    assert found["card.memory.rate"].source is Source.DATA_SHEET
    assert found["card.memory.rate"].value == 4.8e12
    assert found["card.memory.rate"].reason == "peak, not measured here"
    assert found["card.copy.in"].source is Source.NOT_MEASURED


def test_without_an_accelerator_and_a_name_the_reason_names_the_cards() -> None:
    found = by_name(measure_accelerator(none_here, None, 1))
    assert {constant.source for constant in found.values()} == {Source.NOT_MEASURED}
    assert "--card): A100-80GB" in found["card.memory.rate"].reason


class FakeDriver:
    """The driver's library, with one card; every function gives `error` when it is the one that fails."""

    def __init__(self, count: int = 1, failing: str = "") -> None:
        self.count, self.failing = count, failing
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> object:
        def call(*arguments: object) -> int:
            self.calls.append(name)
            if name == self.failing:
                return 2
            if name == "cuDeviceGetCount":
                arguments[0]._obj.value = self.count  # type: ignore[attr-defined]  # what byref points to
            if name == "cuDriverGetVersion":
                arguments[0]._obj.value = 13_020  # type: ignore[attr-defined]  # what byref points to
            if name == "cuDeviceGetName":
                arguments[0].value = b"NVIDIA H100"  # type: ignore[attr-defined]  # a string buffer
            return 0

        return call


def opened_with(driver: FakeDriver) -> AbstractContextManager[Accelerator]:
    return cuda.opened(4096, lambda: cast("ctypes.CDLL", driver))


def test_the_drivers_library_is_opened_used_and_given_back() -> None:
    driver = FakeDriver()
    with opened_with(driver) as card:
        assert (card.name, card.driver) == ("NVIDIA H100", "for CUDA 13.2")
        card.copy_in(10)
        card.copy_out(10)
        card.copy_within(10)
    for copy in ("cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2"):
        assert driver.calls[driver.calls.index(copy) + 1] == "cuCtxSynchronize"
    assert driver.calls[-4:] == [
        "cuMemFreeHost",
        "cuMemFree_v2",
        "cuMemFree_v2",
        "cuDevicePrimaryCtxRelease_v2",
    ]


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (FakeDriver(count=0), "its driver sees none"),
        (FakeDriver(failing="cuInit"), "cuInit gave error 2"),
        (FakeDriver(failing="cuMemAllocHost_v2"), "cuMemAllocHost_v2 gave error 2"),
    ],
)
def test_a_card_that_cannot_be_opened_says_why_and_is_given_back(driver: FakeDriver, words: str) -> None:
    with pytest.raises(NoAcceleratorError, match=words), opened_with(driver):
        pass
    assert driver.calls.count("cuMemAlloc_v2") == driver.calls.count("cuMemFree_v2")
    assert driver.calls.count("cuDevicePrimaryCtxRetain") == driver.calls.count(
        "cuDevicePrimaryCtxRelease_v2"
    )


def test_a_machine_without_the_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "LIBRARY", "libcuda-of-nobody.so.1")
    with pytest.raises(NoAcceleratorError, match="libcuda-of-nobody"):
        cuda.load()
