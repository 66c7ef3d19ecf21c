// Package cpus starts processes that stay on some of this machine's processors.
//
// The ranks of a job that has more of them than there are processors run sooner, and
// meet sooner, if each has its place: the kernel need not find one for it whenever it
// wakes. A [Binding] says which places ranks get, and [On] starts one there:
//
//	sets, err := cpus.Auto.Places(len(ranks))
//	for i, cmd := range ranks {
//		err := cpus.RunOn(cpus.SetOf(sets, i), cmd.Start)
//	}
//
// Where processors are not known, which is everywhere but on Linux, processes stay
// nowhere.
package cpus
