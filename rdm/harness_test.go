package rdm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// guard is how long a test may take before it is taken for hung.
const guard = 4 * time.Minute

// silence is after what time peers of tests are given up: longer than one that lives
// is kept waiting by a machine with much to do.
const silence = 2 * time.Second

func guarded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), guard)
	t.Cleanup(cancel)
	return ctx
}

// device opens an adapter with faults.
func device(t testing.TB, impair string) *rnic.Device {
	dev, err := rnic.Open(rnic.Options{Impair: impair})
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	return dev
}

// endpoint opens one on an adapter of its own.
func endpoint(t testing.TB, impair string, o rdm.Options) *rdm.Endpoint {
	return endpointOn(t, device(t, impair), o)
}

func endpointOn(t testing.TB, dev verbs.Device, o rdm.Options) *rdm.Endpoint {
	e, err := rdm.Open(dev, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// dial makes contact between two endpoints.
func dial(t testing.TB, from, to *rdm.Endpoint) *rdm.Peer {
	p, err := from.Dial(guarded(t), to.Addr())
	require.NoError(t, err)
	return p
}

// seeded is a source of chance that prints its seed.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// faulty are faults in both directions that hit often, of a seed.
func faulty(rng *rand.Rand) string {
	return fmt.Sprintf("loss 4%% duplicate 3%% delay 200us reorder 95%% seed %d", rng.Uint32())
}

// fill fills memory with bytes that tell their place.
func fill(b []byte, salt int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + salt)
	}
}
