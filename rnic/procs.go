package rnic

import (
	"os"
	"runtime"
)

// raiseGOMAXPROCS sees to it that the threads which wait in the socket are not the only ones
// that may run. In a system call that blocks a thread keeps its share of GOMAXPROCS
// until the runtime's monitor takes it away, which it may look for every 10 ms only. Of
// a process with one processor, a rank bound to it for example, nothing else would run
// for so long. So it gets a second share, unless GOMAXPROCS is in its environment. The
// runtime does not follow the number of processors any more then, until
// runtime.SetDefaultGOMAXPROCS.
func raiseGOMAXPROCS() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
	}
}
