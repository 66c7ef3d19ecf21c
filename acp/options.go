package acp

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/fabric/rc"
	"github.com/softrnic/softrnic/acp/internal/fabric/ud"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/verbs"
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
	// else. Without it, things go on in calls of this package only, but for what adapters do by themselves. Over datagrams
	// there always is such a goroutine, for operations wait for each other there.
	Progress bool

	// Patience is how long a rank waits for others without hearing of them before it asks
	// whether they are still there; half a second unless given.
	Patience time.Duration

	// Net is what carries operations: reliable connections, or datagrams for many ranks.
	// SOFTRNIC_ACP_NET sets it, to rc or ud.
	Net Net

	RC rc.Options // how ranks connect
	UD ud.Options // the same, of datagrams
}

// Net is what carries operations.
type Net uint8

// The nets.
const (
	RC Net = iota // reliable connections, one for each rank that something is wanted of
	UD            // datagrams by one queue pair, and RDMA over them
)

// openNet opens what carries the operations of a rank.
func (o *Options) openNet(dev verbs.Device, host fabric.Host, book fabric.KVS) (fabric.Net, error) {
	if o.Net == UD {
		return ud.New(dev, host, book, o.UD)
	}
	return rc.New(dev, host, book, o.RC)
}

func (o *Options) applyDefaults() error {
	switch v := os.Getenv("SOFTRNIC_ACP_NET"); strings.ToLower(v) {
	case "", "rc":
	case "ud":
		o.Net = UD
	default:
		return fmt.Errorf("%w: SOFTRNIC_ACP_NET=%s: it takes rc or ud", ErrOptions, v)
	}
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
