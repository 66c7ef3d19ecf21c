package rnic

// childMain does what a test asks of this process, which it has started, and
// does not return then.
func childMain() {}
