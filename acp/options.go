package acp

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/acp/fabric/rc"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// Options say how a rank works. The zero value is good for most.
type Options struct {
	// Manager is the job's process manager; that of the environment unless given.
	// Finalize finalizes it.
	Manager pmi.Manager

	// Starter is the length of the rank's starter memory in bytes, a multiple of 8;
	// 4 KiB unless given.
	Starter int

	// Progress has a goroutine go on with operations and channels while the program does something
	// else. Without it, things go on in calls of this package only, but for what adapters do by themselves.
	Progress bool

	// Patience is how long a rank waits for others without hearing of them before it asks
	// whether they are still there; half a second unless given.
	Patience time.Duration

	// RC says how ranks connect.
	RC rc.Options
}

func (o *Options) fill() error {
	if o.Starter == 0 {
		o.Starter = 4 << 10
	}
	if o.Starter < 0 || o.Starter%8 != 0 || o.Starter > 1<<30 {
		return fmt.Errorf("%w: Options.Starter is %d and has to be a multiple of 8 up to 2^30", ErrOptions, o.Starter)
	}
	if o.Patience <= 0 {
		o.Patience = 500 * time.Millisecond
	}
	return nil
}
