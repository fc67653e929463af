"""The parts of scripts/bench-sweep: deciding alone, a sweep on a real cluster, owed to started."""
