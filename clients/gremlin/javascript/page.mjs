// A page of traversals by gremlin-javascript: node page.mjs ws://HOST:PORT/gremlin GRAPH, where GRAPH is open and empty.
import assert from "node:assert/strict";
import gremlin from "gremlin";

const { t, P, order, scope, statics: __ } = { ...gremlin.process, order: gremlin.process.order };
const [url, graph] = process.argv.slice(2);
const connection = new gremlin.driver.DriverRemoteConnection(url, { traversalSource: graph });
const g = gremlin.process.AnonymousTraversalSource.traversal().with_(connection);

let asked = 0;
async function check(traversal, expected) {
  const found = await traversal.toList();
  assert.deepEqual(found, expected, traversal.toString());
  asked += 1;
}

try {
  await g.addV("person").property(t.id, 1).property("name", "ann").property("age", 34)
    .addV("person").property(t.id, 2).property("name", "bob").property("age", 29)
    .addV("person").property(t.id, 3).property("name", "cid").property("age", 41)
    .addV("club").property(t.id, 4).property("name", "tea")
    .iterate();
  for (const [from, label, to, weight] of [[1, "follows", 2, 0.5], [2, "follows", 3, 1.5], [1, "joins", 4, 1.0], [3, "joins", 4, 2.0]]) {
    await g.V(from).addE(label).to(__.V(to)).property("weight", weight).iterate();
  }
  await check(g.V().count(), [4]);
  await check(g.V(1).out("follows").values("name"), ["bob"]);
  await check(g.V(4).in_("joins").values("name").order(), ["ann", "cid"]);
  await check(g.V(1).out("follows").out("follows").dedup().count(), [1]);
  await check(g.V().hasLabel("person").has("age", P.gt(30)).values("name").order(), ["ann", "cid"]);
  await check(g.E().values("weight").sum(), [5]);
  await check(g.V().hasLabel("person").order().by("age", order.desc).limit(1).values("name"), ["cid"]);
  await check(g.V(1).repeat(__.out("follows")).times(2).path().by("name").map(__.count(scope.local)), [3]);
  await check(g.V().groupCount().by(t.label), [new Map([["person", 3], ["club", 1]])]);
  const [edge] = await g.V(1).outE("follows").toList();
  assert.equal(edge.id, "1>follows>2");
  await g.V(2).property("age", 30).iterate();
  await check(g.V(2).values("age"), [30]);
  await g.V(2).drop().iterate();
  await check(g.V(1).out("follows").count(), [0]);
  await assert.rejects(g.V().has("name", "ann").subgraph("x").toList(), /not supported/);
  await g.V().drop().iterate();
  await check(g.V().count(), [0]);
  console.log(`gremlin-javascript: ${asked} traversals answered as expected`);
} finally {
  await connection.close();
}
