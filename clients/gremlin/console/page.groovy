:plugin use tinkerpop.server
:remote connect tinkerpop.server remote.yaml
:remote config alias g GRAPH
:> g.addV("person").property(T.id, 1L).property("name", "ann").property("age", 34)
:> g.addV("person").property(T.id, 2L).property("name", "bob").property("age", 29)
:> g.V(1L).addE("follows").to(__.V(2L)).property("weight", 0.5d)
:> g.V().count()
:> g.V(1L).out("follows").values("name")
:> g.V(1L).outE("follows").id()
:> g.V(1L).out("follows").path().by("name")
:> g.V().hasLabel("person").has("age", P.gt(30)).values("name")
:> g.V().groupCount().by(T.label)
:> g.V().drop()
:> g.V().count()
:> g.V().subgraph("x")
