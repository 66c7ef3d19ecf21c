package pages

// Mapped is nil on systems where all pages come from the Go heap.
var Mapped = mapPages
