package pages

// Mapped is nil where there are no pages but the heap's.
var Mapped = mapPages
