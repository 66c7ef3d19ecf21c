package membership_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/detector"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/tcp"
	"github.com/softrnic/softrnic/mpi/internal/membership"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// overTCP returns the configuration of a rank that needs no adapter.
func overTCP(m pmi.Manager) membership.Config {
	return membership.Config{
		Manager: m,
		OpenFabric: func(h fabric.Host) (fabric.Fabric, io.Closer, error) {
			f, err := tcp.New(h, m, tcp.Options{})
			return f, nil, err
		},
		Detector: detector.Config{GiveUp: 10 * time.Second},
	}
}

// Two ranks join a job and leave it.
func Example() {
	err := pmi.RunLocal(2, time.Minute, func(manager pmi.Manager) error {
		ctx := context.Background()
		m, err := membership.Join(ctx, overTCP(manager))
		if err != nil {
			return err
		}
		m.Detector.Start()
		if manager.Rank() == 0 {
			fmt.Println(m.Engine.Size(), "ranks have joined")
		}
		_, err = m.Synchronize(ctx, membership.LastCalls{
			Name:    "world",
			Barrier: func() error { return nil }, // ranks that call nothing else may leave without one
			Fail:    func(step string, err error) error { return fmt.Errorf("%s: %w", step, err) },
		})
		return errors.Join(err, m.Close(ctx))
	})
	fmt.Println(err)
	// Output:
	// 2 ranks have joined
	// <nil>
}
