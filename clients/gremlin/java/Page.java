// A page of traversals by the Java driver: java -cp 'lib/*' Page.java HOST PORT GRAPH, where GRAPH is open and empty.
// The same page is asked in both codings.

import static org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource.traversal;

import java.util.List;
import java.util.Map;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
import org.apache.tinkerpop.gremlin.process.traversal.Order;
import org.apache.tinkerpop.gremlin.process.traversal.P;
import org.apache.tinkerpop.gremlin.process.traversal.Scope;
import org.apache.tinkerpop.gremlin.process.traversal.Traversal;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.__;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.util.ser.Serializers;

public class Page {
    private static int asked = 0;

    private static void check(Traversal<?, ?> traversal, Object... expected) {
        String text = traversal.toString();
        List<?> found = traversal.toList();
        if (!found.equals(List.of(expected))) {
            throw new AssertionError(text + ": " + found + " instead of " + List.of(expected));
        }
        asked += 1;
    }

    private static void write(GraphTraversalSource g) {
        g.addV("person").property(T.id, 1L).property("name", "ann").property("age", 34).as("ann")
            .addV("person").property(T.id, 2L).property("name", "bob").property("age", 29).as("bob")
            .addV("person").property(T.id, 3L).property("name", "cid").property("age", 41).as("cid")
            .addV("club").property(T.id, 4L).property("name", "tea").as("tea")
            .addE("follows").from("ann").to("bob").property("weight", 0.5)
            .addE("follows").from("bob").to("cid").property("weight", 1.5)
            .addE("joins").from("ann").to("tea").property("weight", 1.0)
            .addE("joins").from("cid").to("tea").property("weight", 2.0)
            .iterate();
    }

    private static void ask(GraphTraversalSource g) {
        check(g.V().count(), 4L);
        check(g.V(1L).out("follows").values("name"), "bob");
        check(g.V(4L).in("joins").values("name").order(), "ann", "cid");
        check(g.V(1L).out("follows").out("follows").dedup().count(), 1L);
        check(g.V().hasLabel("person").has("age", P.gt(30)).values("name").order(), "ann", "cid");
        check(g.E().values("weight").sum(), 5.0);
        check(g.V().hasLabel("person").order().by("age", Order.desc).limit(1).values("name"), "cid");
        check(g.V(1L).repeat(__.out("follows")).times(2).path().by("name").count(Scope.local), 3L);
        check(g.V().groupCount().by(T.label), Map.of("person", 3L, "club", 1L));
        check(g.V(1L).outE("follows").id(), "1>follows>2");
        check(g.V(1L).elementMap("age"), Map.of(T.id, 1L, T.label, "person", "age", 34));
        g.V(2L).property("age", 30).iterate();
        check(g.V(2L).values("age"), 30);
        g.V(2L).drop().iterate();
        check(g.V(1L).out("follows").count(), 0L);
        try {
            g.V().subgraph("x").toList();
            throw new AssertionError("subgraph() must be refused");
        } catch (RuntimeException refused) {
            if (!refused.getMessage().contains("not supported")) throw refused;
        }
        g.V().drop().iterate();
        check(g.V().count(), 0L);
    }

    public static void main(String[] arguments) throws Exception {
        for (Serializers coding : List.of(Serializers.GRAPHBINARY_V1, Serializers.GRAPHSON_V3)) {
            Cluster cluster = Cluster.build(arguments[0]).port(Integer.parseInt(arguments[1]))
                .serializer(coding).create();
            try (GraphTraversalSource g = traversal().with(DriverRemoteConnection.using(cluster, arguments[2]))) {
                write(g);
                ask(g);
            } finally {
                cluster.close();
            }
            System.out.println("gremlin-driver (" + coding + "): " + asked + " traversals answered as expected");
        }
    }
}
