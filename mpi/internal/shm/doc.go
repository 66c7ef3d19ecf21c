// Package shm is memory that several processes of a machine have in common, and a
// board in it, by which they tell each other things without a system call.
//
// One makes a [Segment] and tells the others its name, for example by a message.
// They open it, say that they have, and then the first one takes the name away: the
// memory lasts as long as somebody has it.
//
//	s, err := shm.Create(shm.BoardSize(ranks, room))      // rank 0
//	s, err := shm.Open(name, shm.BoardSize(ranks, room))  // all others
//	s.Unlink()                                       // rank 0, when all have opened it
//	b := shm.NewBoard(s.Bytes(), ranks, room, rank)
//
// A [Board] is used in rounds, which all ranks make alike: each writes to its place
// and shows it, looks at those of the others, and is done. It does not wait: package
// mpi knows better what a rank can do meanwhile.
//
//	b.Begin()
//	for r := range ranks { for !b.Free(r) { ... } }   // nobody looks at our place
//	copy(b.Place(rank), data)
//	b.Show(sign)
//	for r := range ranks { for !b.Shown(r) { ... } use(b.Place(r)) }
//	b.Done()
package shm
