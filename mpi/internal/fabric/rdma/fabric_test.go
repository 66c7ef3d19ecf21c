package rdma_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// An unorderedDevice is a device that does not promise the order of writes.
type unorderedDevice struct{ verbs.Device }

func (d unorderedDevice) QueryDevice() verbs.DeviceAttr {
	attr := d.Device.QueryDevice()
	attr.OrderedWrites = false
	return attr
}

// TestFastPathNeedsOrderedWrites checks that the fast path, whose receiver polls the last word of a
// packet, is refused on a device that may write it first (iWARP paper, section 3.3).
func TestFastPathNeedsOrderedWrites(t *testing.T) {
	dev, err := rnic.Open(rnic.Options{})
	require.NoError(t, err)
	defer dev.Close()
	require.True(t, dev.QueryDevice().OrderedWrites)
	_, err = rdma.New(unorderedDevice{dev}, nil, nil, rdma.Options{Fast: true})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	require.ErrorContains(t, err, "order of writes")
}
