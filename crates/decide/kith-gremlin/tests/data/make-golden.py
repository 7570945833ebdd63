"""Writes golden.txt, values as gremlin-python 3.8.1 codes them, and requests.txt, whole frames that it sends.

A line of golden.txt has the value's type and text as Kith prints them, GraphBinary in hexadecimal digits, and GraphSON 3. A `*`
before a coding says that Kith writes the value in another way than gremlin-python. A line of requests.txt has what Kith reads
in a request, and the frames of both codings in hexadecimal digits.
"""

import datetime as d
import json
import pathlib
import uuid

from gremlin_python import statics as s
from gremlin_python.driver.request import RequestMessage
from gremlin_python.driver.serializer import GraphBinarySerializersV1, GraphSONSerializersV3d0
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.strategies import ReadOnlyStrategy, SubgraphStrategy
from gremlin_python.process.traversal import (
    Barrier, Binding, Cardinality, CardinalityValue, Column, Direction, DT, GType, Merge, Operator, Order, P, Pick, Pop, Scope,
    T, TextP, Traverser,
)
from gremlin_python.structure.graph import Edge, Path, Property, Vertex, VertexProperty
from gremlin_python.structure.io.graphbinaryV1 import GraphBinaryWriter
from gremlin_python.structure.io.graphsonV3d0 import GraphSONWriter

marko, vadas = Vertex(1, "person"), Vertex("x", "person")
zone = d.timezone(d.timedelta(hours=2))
g = traversal().with_(None)

VALUES = [
    ("null null", None),
    ("Boolean true", True),
    ("Int 7", s.IntType(7)),
    ("Int -2147483648", s.IntType(-2147483648)),
    ("Long 7", s.LongType(7)),
    ("Short -3", s.ShortType(-3)),
    ("Byte -1", s.SingleByte(-1)),
    ("Double 0.5", 0.5),
    ("Double NaN", float("nan")),
    ("Double -Infinity", float("-inf")),
    ("BigInteger 36893488147419103232", s.BigIntType(1 << 65)),
    ("BigInteger -36893488147419103233", s.BigIntType(-(1 << 65) - 1)),
    ("BigDecimal 123.450", s.BigDecimal(3, 123450)),
    ("String grüße", "grüße"),
    ("String ", ""),
    ("Char é", s.SingleChar("é")),
    ("UUID 41d2e28a-20a4-4ab0-b379-d810dede3786", uuid.UUID("41d2e28a-20a4-4ab0-b379-d810dede3786")),
    ("DateTime 2023-08-02T10:15:30.500+02:00", d.datetime(2023, 8, 2, 10, 15, 30, 500000, tzinfo=zone)),
    ("DateTime 2023-08-02T10:15:30Z", d.datetime(2023, 8, 2, 10, 15, 30)),
    ("DateTime 2016-12-14T21:14:36.295Z", s.timestamp(1481750076.295)),
    ("Duration PT1M1.5S", d.timedelta(seconds=61, microseconds=500000)),
    ("List [1, a, [null]]", [s.IntType(1), "a", [None]]),
    ("Set [a]", {"a"}),
    ("Map {a=1, id=[2]}", {"a": s.IntType(1), T.id: [s.LongType(2)]}),
    ("Vertex v[1]", marko),
    ("Edge e[7][1-knows->x]", Edge(s.LongType(7), marko, "knows", vadas)),
    ("VertexProperty vp[name->marko]", VertexProperty(s.LongType(0), "name", "marko", marko)),
    ("Property p[weight->0.5]", Property("weight", 0.5, None)),
    ("T id", T.id),
    ("T label", T.label),
    ("Direction OUT", Direction.OUT),
    ("Order desc", Order.desc),
    ("Pop all", Pop.all_),
    ("Scope local", Scope.local),
    ("Column keys", Column.keys),
    ("Cardinality set", Cardinality.set_),
    ("Operator addAll", Operator.add_all),
    ("Operator sumLong", Operator.sum_long),
    ("Merge onCreate", Merge.on_create),
    ("Merge outV", Merge.out_v),
    ("Pick unproductive", Pick.unproductive),
    ("Pick any", Pick.any_),
    ("DT hour", DT.hour),
    ("Barrier normSack", Barrier.norm_sack),
    ("GType VPROPERTY", GType.VPROPERTY),
    ("P eq(1)", P.eq(s.IntType(1))),
    ("P eq([1, 2])", P.eq([s.IntType(1), s.IntType(2)])),
    ("P within([1, a])", P.within(s.IntType(1), "a")),
    ("P within([])", P.within([])),
    ("P between(1, 3)", P.between(s.IntType(1), s.IntType(3))),
    ("P and(gt(1), not(eq(3)))", P.gt(s.IntType(1)).and_(P.not_(P.eq(s.IntType(3))))),
    ("P typeOf(INT)", P.type_of(GType.INT)),
    ("P startingWith(m)", TextP.starting_with("m")),
    ("P notRegex(a.*)", TextP.not_regex("a.*")),
    ("Traverser a", Traverser("a", s.LongType(2))),
    ("Int 5", Binding("x", s.IntType(5))),
    ("CardinalityValue list(a)", CardinalityValue.list_("a")),
    (
        "Traversal V(1).has(name, within([a, b])).repeat(out(knows)).times(2)",
        g.V(s.IntType(1)).has("name", P.within("a", "b")).repeat(__.out("knows")).times(s.IntType(2)).bytecode,
    ),
    ("Traversal withSideEffect(x, [1]).V()", g.with_side_effect("x", [s.IntType(1)]).V().bytecode),
    ("Traversal withStrategies(ReadOnlyStrategy).V()", g.with_strategies(ReadOnlyStrategy()).V().bytecode),
    ("Traversal withStrategies(OptionsStrategy).V()", g.with_("kith.fan_out", "groups=1").V().bytecode),
    (
        "Traversal withStrategies(SubgraphStrategy).V()",
        g.with_strategies(SubgraphStrategy(vertices=__.has_label("person"))).V().bytecode,
    ),
    ("Traversal map(lambda[gremlin-groovy])", __.map(lambda: ("it.get()", "gremlin-groovy")).bytecode),
]
# Which values Kith writes in another way, in GraphBinary and in GraphSON: positive integers without a zero in front, times with
# their offset and only the digits needed, properties without their parent, a list of operands as a list, the value of a binding,
# and strategies without a package.
OTHERWISE = {
    "BigInteger 36893488147419103232": ("*", ""),
    "BigDecimal 123.450": ("*", ""),
    "DateTime 2023-08-02T10:15:30.500+02:00": ("", "*"),
    "DateTime 2023-08-02T10:15:30Z": ("*", "*"),
    "DateTime 2016-12-14T21:14:36.295Z": ("*", "*"),
    "VertexProperty vp[name->marko]": ("", "*"),
    "Property p[weight->0.5]": ("", "*"),
    "P eq([1, 2])": ("*", ""),
    "Int 5": ("*", "*"),
    "Traversal withStrategies(ReadOnlyStrategy).V()": ("*", "*"),
    "Traversal withStrategies(OptionsStrategy).V()": ("*", "*"),
    "Traversal withStrategies(SubgraphStrategy).V()": ("*", "*"),
}

# Requests, and what Kith makes of them.
REQUESTS = [
    (
        "eval g.V(x) {x=1} None {g=people} 64 None",
        RequestMessage("", "eval", {
            "gremlin": "g.V(x)", "bindings": {"x": s.IntType(1)}, "aliases": {"g": "people"}, "batchSize": s.IntType(64),
        }),
    ),
    (
        "eval 1+1 {} Some(\"gremlin-lang\") {} None Some(30s)",
        RequestMessage("", "eval", {
            "gremlin": "1+1", "language": "gremlin-lang", "evaluationTimeout": s.LongType(30_000), "userAgent": "test",
        }),
    ),
    (
        "bytecode V(1).out(knows) {g=people} None None",
        RequestMessage("traversal", "bytecode", {
            "gremlin": g.V(s.IntType(1)).out("knows").bytecode, "aliases": {"g": "people"},
        }),
    ),
    (
        "authentication stephen",
        RequestMessage("traversal", "authentication", {"sasl": "AHN0ZXBoZW4AcGFzc3dvcmQ="}),
    ),
    (
        "rejected: sessions are not supported (operation \"close\"); send requests without one",
        RequestMessage("session", "close", {"session": "1"}),
    ),
]
REQUEST_ID = "41d2e28a-20a4-4ab0-b379-d810dede3786"

here = pathlib.Path(__file__).parent
with open(here / "golden.txt", "w") as file:
    for text, value in VALUES:
        binary_mark, graphson_mark = OTHERWISE.get(text, ("", ""))
        binary = bytearray()
        GraphBinaryWriter().to_dict(value, binary)
        graphson = json.dumps(GraphSONWriter().to_dict(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        print(text, binary_mark + binary.hex(), graphson_mark + graphson, sep="\t", file=file)
with open(here / "requests.txt", "w") as file:
    for text, request in REQUESTS:
        frames = []
        for serializer in [GraphBinarySerializersV1(), GraphSONSerializersV3d0()]:
            copy = RequestMessage(request.processor, request.op, dict(request.args))
            frames.append(serializer.serialize_message(REQUEST_ID, copy).hex())
        print(text, *frames, sep="\t", file=file)
