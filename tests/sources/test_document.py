"""Every item of a document has its claims or says why it has none, and every claim of a document belongs to an item."""

from __future__ import annotations

import collections

import pytest

from separatrix.experiments import catalogue
from separatrix.sources import Document, documents

ALL = list(documents().values())
CLAIMS = {claim.id: claim for experiment in catalogue().values() for claim in experiment.claims}
whole = pytest.mark.parametrize("document", ALL, ids=lambda document: document.key)


@whole
def test_a_document_lists_its_items_and_each_has_a_claim_or_a_reason(document: Document) -> None:
    assert document.items
    for item in document.items:
        assert item.says.strip()
        assert bool(item.claims) or len(item.reason) > 10, item.name


@whole
def test_items_name_claims_that_exist(document: Document) -> None:
    unknown = {name for item in document.items for name in item.claims} - set(CLAIMS)
    assert not unknown


@whole
def test_every_claim_on_a_document_belongs_to_an_item(document: Document) -> None:
    own = {name for name, claim in CLAIMS.items() if claim.document == document.key}
    assert own <= {name for item in document.items for name in item.claims}


@whole
def test_no_item_stands_twice_and_numbers_have_no_gaps(document: Document) -> None:
    names = [item.name for item in document.items]
    assert len(set(names)) == len(names)
    own, shared = collections.defaultdict(set), collections.defaultdict(set)
    for item in document.items:
        section, _, last = item.number.replace("-", ".").rpartition(".")
        if item.kind in GAPLESS and last.isdigit():
            own[item.kind, section].add(int(last))
            shared[section].add(int(last))
    for (kind, section), found in own.items():
        together = shared[section]  # some documents count lemmas, theorems and remarks together
        assert {True} & {is_gapless(found), is_gapless(together)}, f"{kind} {section}"


def is_gapless(numbers: set[int]) -> bool:
    return numbers == set(range(min(numbers), max(numbers) + 1))


GAPLESS = ("theorem", "lemma", "proposition", "corollary", "figure", "table", "algorithm", "remark", "definition")
"""Kinds that the documents number one by one within a section or the whole."""
