"""Which error code may go to which peer."""

from __future__ import annotations

import pytest

from modelwire.errors import MethodNotFound, NotFound, RpcError, ToolError
from modelwire.protocol.revisions import REVISIONS, Revision
from modelwire.rules.codes import code_for

EACH = pytest.mark.parametrize("revision", REVISIONS, ids=str)


@EACH
def test_a_missing_resource_has_the_code_of_the_revision(revision: Revision) -> None:
    expected = -32002 if revision.handshake else -32602
    assert revision.resource_not_found_code == expected
    assert code_for(NotFound("x", uri="a:b"), revision) == expected
    assert code_for(RpcError(-32002, "x"), revision) == expected


@EACH
def test_anything_else_that_is_missing_is_invalid_params(revision: Revision) -> None:
    assert code_for(NotFound("no such prompt"), revision) == -32602


@EACH
@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32603, 0, 1, 429, -1, -31999, -32100, 2**31, -99999])
def test_codes_that_are_free_or_json_rpcs_own_go_out_as_they_are(revision: Revision, code: int) -> None:
    assert code_for(RpcError(code, "x"), revision) == code


@EACH
@pytest.mark.parametrize("code", [-32000, -32001, -32019, -32023, -32050, -32099])
def test_reserved_codes_that_nobody_defines_never_go_out(revision: Revision, code: int) -> None:
    assert code_for(RpcError(code, "x"), revision) == -32603


@EACH
@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_codes_of_the_newest_revision_go_to_no_other(revision: Revision, code: int) -> None:
    assert code_for(RpcError(code, "x"), revision) == (-32603 if revision.handshake else code)


@EACH
def test_a_needed_visit_to_a_url_is_told_in_one_revision_only(revision: Revision) -> None:
    assert code_for(RpcError(-32042, "x"), revision) == (-32042 if revision.name == "2025-11-25" else -32603)


def test_every_error_that_handlers_may_raise_has_a_code() -> None:
    assert code_for(MethodNotFound(-32601, "x"), REVISIONS[0]) == -32601
    assert not issubclass(ToolError, RpcError)
