//! TFL (Ma, Li & Peng 2024): the topology of clients, and the prior over them that follows from it.
