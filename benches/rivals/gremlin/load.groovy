// Loads EDGES, which is replaced when the server starts, before the server listens. Ids are texts in JanusGraph, as only
// those can be chosen freely, and long integers in TinkerGraph.
import java.util.zip.GZIPInputStream
import org.apache.tinkerpop.gremlin.structure.T

def load = { graph ->
  def isText = graph.class.name.contains("janus")
  def vertices = [:]
  def vertex = { text ->
    vertices.computeIfAbsent(text) { graph.addVertex(T.id, isText ? it : it.toLong(), T.label, "vertex") }
  }
  new GZIPInputStream(new FileInputStream("EDGES")).eachLine { line, number ->
    if (number > 1) {
      def (from, to) = line.split(",")
      vertex(from).addEdge("connection", vertex(to))
    }
  }
  if (isText) graph.tx().commit()
}

def globals = [:]
globals << [hook: [onStartUp: { context -> load(graph) }] as LifeCycleHook]
globals << [g: traversal().withEmbedded(graph)]
globals
