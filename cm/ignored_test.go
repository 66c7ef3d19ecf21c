package cm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// TestUnusedOptions checks that options that do not apply to the type of queue pair, or to the
// accepting side, have no effect.
func TestUnusedOptions(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	l, err := b.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	unused := verbs.ConnectOptions{AckTimeout: 9 * time.Hour, Retries: 99, RNRRetries: 99, RNRDelay: -1, MaxRdAtomic: 999, MaxDestRdAtomic: -9}
	for name, c := range map[string]struct {
		typ              verbs.QPType
		dialing, accepts verbs.ConnectOptions
	}{
		"plain UC":          {typ: verbs.UC},
		"RC's to UC":        {verbs.UC, unused, unused},
		"an acceptor's MTU": {typ: verbs.RC, accepts: verbs.ConnectOptions{MTU: 99}},
	} {
		t.Run(name, func(t *testing.T) {
			accepted := make(chan error, 1)
			qb := b.newQP(t, c.typ)
			go func() {
				r, err := l.Accept(soon(t))
				if err == nil {
					_, err = r.Accept(soon(t), qb, cm.AcceptOptions{ConnectOptions: c.accepts})
				}
				accepted <- err
			}()
			qa := a.newQP(t, c.typ)
			_, err := a.m.Dial(soon(t), l.Addr(), qa, cm.DialOptions{ConnectOptions: c.dialing, UDPPort: b.dev.Addr().Port()})
			require.NoError(t, err)
			require.NoError(t, <-accepted)
			if c.typ == verbs.UC {
				for _, q := range []verbs.QP{qa, qb} {
					got, _ := q.Query()
					require.Equal(t, verbs.AccessRemoteWrite, got.AccessFlags)
					require.Zero(t, got.MaxRdAtomic)
				}
			}
		})
	}
}
