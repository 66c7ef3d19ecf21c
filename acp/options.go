package acp

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/fabric/rc"
	"github.com/softrnic/softrnic/acp/internal/fabric/ud"
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/environment"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/verbs"
)

// Options configure a rank. The zero value suits most programs.
type Options struct {
	// Manager is the job's process manager. Nil means the one named by the environment. Finalize finalizes
	// it.
	Manager pmi.Manager

	// Starter is the length of the rank's starter memory in bytes, a multiple of 8. 0 means 4 KiB.
	Starter int

	// Progress starts a background goroutine that makes progress on operations and channels while the program
	// computes. Without it, progress happens only in calls of this package, except for the operations that
	// adapters carry out by themselves. Over UD the goroutine always runs, because operations queue behind
	// each other there.
	Progress bool

	// ProbeDelay is the time without an event after which a waiting rank probes the ranks it waits for. 0 means
	// 500 ms.
	ProbeDelay time.Duration

	// Net selects the transport: reliable connections, or datagrams for jobs of many ranks. The environment
	// variable SOFTRNIC_ACP_NET (rc or ud) overrides it.
	Net Net

	// Connect contains the attributes of the connections of the RC transport, and CM configures their
	// connection manager. CM.Receives is 512 unless set.
	Connect verbs.ConnectOptions
	CM      cm.Options

	// RDM configures the endpoint of the UD transport. RDM.GiveUp, the time without a response after which a
	// rank is lost, is 10 s unless set.
	RDM rdm.Options
}

// Net is a transport for operations.
type Net uint8

// The transports.
const (
	RC Net = iota // Reliable connections, one to each rank that is accessed.
	UD            // Datagrams over one UD queue pair, with RDMA over UD.
)

// openNet opens the transport that o selects, or returns nil and an error.
func (o *Options) openNet(dev verbs.Device, host fabric.Host, kvs fabric.KVS) (fabric.Net, error) {
	if o.Net == UD {
		n, err := ud.New(dev, host, kvs, ud.Options{RDM: o.RDM})
		if err != nil {
			return nil, fmt.Errorf("Options.RDM: %w", err)
		}
		return n, nil
	}
	n, err := rc.New(dev, host, kvs, rc.Options{Connect: o.Connect, CM: o.CM})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// applyDefaults applies the environment, fills in the zero fields, and validates the options.
func (o *Options) applyDefaults() error {
	net, err := environment.Word("SOFTRNIC_ACP_NET", "rc", "ud")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if net == "ud" {
		o.Net = UD
	}
	if o.Starter == 0 {
		o.Starter = 4 << 10
	}
	if o.Starter < 0 || o.Starter%8 != 0 || o.Starter > 1<<30 {
		return fmt.Errorf("%w: Options.Starter: %d, want a multiple of 8 in [0, 2^30]", ErrOptions, o.Starter)
	}
	if o.Net > UD {
		return fmt.Errorf("%w: Options.Net: %d out of range [0, %d]", ErrOptions, o.Net, UD)
	}
	if o.ProbeDelay < 0 {
		return fmt.Errorf("%w: Options.ProbeDelay: %v is negative", ErrOptions, o.ProbeDelay)
	}
	if o.ProbeDelay == 0 {
		o.ProbeDelay = 500 * time.Millisecond
	}
	if _, err := o.Connect.QPAttr(verbs.RC); err != nil {
		return fmt.Errorf("%w: Options.Connect: %w", ErrOptions, err)
	}
	return nil
}
