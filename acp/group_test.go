package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// TestGroup checks that the failures of groups and of handles are returned to their callers, once each.
func TestGroup(t *testing.T) {
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		mine, all, err := share(p, make([]byte, 64))
		require.NoError(t, err)
		other := all[1-p.Rank()]
		good, bad := p.NewGroup(), p.NewGroup()
		var before uint64
		good.FetchAdd(nil, other.Add(8), 1)
		bad.Copy(other.Add(60), mine.GA(0), 8)
		bad.CompareSwap(nil, other.Add(4), 0, 1)
		h := p.Copy(other+7<<32, mine.GA(0), 8, acp.None)
		good.Copy(other.Add(16), mine.GA(0), 8)
		require.NoError(t, good.Wait(ctx))
		require.ErrorIs(t, p.Complete(ctx, h), acp.ErrRegion)
		require.NoError(t, p.Complete(ctx, acp.All))
		err = bad.Wait(ctx)
		require.ErrorIs(t, err, acp.ErrRange)
		require.ErrorIs(t, err, acp.ErrAlign)
		require.NotErrorIs(t, err, acp.ErrRegion)
		require.NoError(t, bad.Wait(ctx))
		good.CompareSwap(&before, other.Add(8), 1, 5)
		require.NoError(t, good.Wait(ctx))
		require.EqualValues(t, 1, before)
		return p.Sync(ctx)
	}))
}
