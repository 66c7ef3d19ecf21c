package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

func TestShift(t *testing.T) {
	const steps = 123
	for _, imm := range []bool{false, true} {
		for _, n := range []int{1, 2, 4} {
			var out bytes.Buffer // rank 0's
			require.NoError(t, acptest.Run(n, func(p *acp.Process) error {
				return shiftArray(p, steps, acp.ChannelOptions{SlotSize: 64, Imm: imm}, &out)
			}))
			require.Equal(t, fmt.Sprintf("%d elements of %d ranks are shifted by %d.\n", partSize*n, n, steps), out.String())
		}
	}
}
