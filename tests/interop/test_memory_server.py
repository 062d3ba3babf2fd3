"""A modelwire client of the npm server "memory": objects in, objects out, and a resource that follows them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypedDict

import msgspec
import pytest
import pytest_asyncio

from modelwire import Client, ResourceUpdated, ToolError
from tests.interop.peers import PATIENCE, connected, needs_node_peers, node_server

pytestmark = needs_node_peers
GRAPH = "memory://knowledge-graph"


@dataclass
class Entity:
    name: str
    entityType: str
    observations: list[str] = field(default_factory=list)


class Relation(msgspec.Struct):
    source: str = msgspec.field(name="from")
    to: str = ""
    relationType: str = ""


class Graph(TypedDict):
    entities: list[Entity]
    relations: list[Relation]


ADA = Entity("Ada", "person", ["likes tea"])
ENGINE = Entity("Engine", "machine")
WROTE_FOR = {"from": "Ada", "to": "Engine", "relationType": "wrote for"}


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a server whose graph has two entities and a relation."""
    async with connected(node_server("memory"), env={"MEMORY_FILE_PATH": str(tmp_path / "graph.jsonl")}) as client:
        entities = [asdict(ADA), asdict(ENGINE)]
        made = await client.call("create_entities", {"entities": entities}, returns=dict[str, list[Entity]])
        assert made == {"entities": [ADA, ENGINE]}
        assert await client.call("create_relations", {"relations": [WROTE_FOR]}) == {"relations": [WROTE_FOR]}
        yield client


async def test_the_graph_is_read_as_objects(client: Client) -> None:
    graph = await client.call("read_graph", returns=Graph)
    assert graph["entities"] == [ADA, ENGINE]
    assert graph["relations"] == [Relation("Ada", "Engine", "wrote for")]
    found = await client.call("search_nodes", {"query": "tea"}, returns=Graph)
    assert [entity.name for entity in found["entities"]] == ["Ada"]
    opened = await client.call("open_nodes", {"names": ["Engine"]}, returns=Graph)
    assert opened["entities"] == [ENGINE]


async def test_observations_and_entities_come_and_go(client: Client) -> None:
    more = {"observations": [{"entityName": "Ada", "contents": ["likes tea", "hates mud"]}]}
    assert await client.call("add_observations", more) == {
        "results": [{"entityName": "Ada", "addedObservations": ["hates mud"]}]
    }
    for tool, arguments in (
        ("delete_observations", {"deletions": [{"entityName": "Ada", "observations": ["hates mud"]}]}),
        ("delete_relations", {"relations": [WROTE_FOR]}),
        ("delete_entities", {"entityNames": ["Engine"]}),
    ):
        assert (await client.call(tool, arguments))["success"] is True
    assert await client.call("read_graph", returns=Graph) == {"entities": [ADA], "relations": []}


async def test_the_resource_is_told_of_and_read_again(client: Client) -> None:
    [resource] = await client.list_resources()
    assert (resource.uri, resource.mime_type) == (GRAPH, "application/json")
    async with client.listen(uris=[GRAPH]) as events, asyncio.timeout(PATIENCE):
        await client.call("delete_entities", {"entityNames": ["Engine"]})
        assert await anext(events) == ResourceUpdated(GRAPH)
        graph = json.loads((await client.read_resource(GRAPH)).contents[0].text)
    assert [entity["name"] for entity in graph["entities"]] == ["Ada"]


async def test_what_the_server_cannot_do_is_a_tool_error(client: Client) -> None:
    with pytest.raises(ToolError, match="Entity with name Bob not found"):
        await client.call("add_observations", {"observations": [{"entityName": "Bob", "contents": ["?"]}]})
    with pytest.raises(ToolError, match="expected array, received string at names"):
        await client.call("open_nodes", {"names": "Ada"})
    # What has "isError" in it is an error, whatever the schema of the tool says of results.
    assert (await client.call_tool("open_nodes", {})).is_error is True
