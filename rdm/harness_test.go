package rdm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/wiretest"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestMain runs the tests that apply to the protocol of devices.
func TestMain(m *testing.M) {
	wiretest.SkipExceptions("rdm")
	os.Exit(m.Run())
}

// guard is the time after which a test is considered to hang.
const guard = 4 * time.Minute

// silence is the time after which peers of tests fail: longer than a busy machine delays one that
// is alive.
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

// endpoint opens an endpoint on an adapter of its own.
func endpoint(t testing.TB, impair string, o rdm.Options) *rdm.Endpoint {
	return endpointOn(t, device(t, impair), o)
}

func endpointOn(t testing.TB, dev verbs.Device, o rdm.Options) *rdm.Endpoint {
	e, err := rdm.Open(dev, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// dial connects two endpoints.
func dial(t testing.TB, from, to *rdm.Endpoint) *rdm.Peer {
	p, err := from.Dial(guarded(t), to.Addr())
	require.NoError(t, err)
	return p
}

// newRand returns a random source and prints its seed.
func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// faulty returns frequent faults in both directions, with a seed.
func faulty(rng *rand.Rand) string {
	return fmt.Sprintf("loss 4%% duplicate 3%% delay 200us reorder 95%% seed %d", rng.Uint32())
}

// fill fills memory with bytes that depend on their position.
func fill(b []byte, salt int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + salt)
	}
}
