package cpus

import (
	"errors"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestOn(t *testing.T) {
	order := Order()
	require.NotEmpty(t, order)
	var before, after unix.CPUSet
	last := order[len(order)-1]
	err := On([]int{last}, func() error {
		out, err := exec.Command("grep", "Cpus_allowed_list", "/proc/self/status").Output()
		require.Equal(t, "Cpus_allowed_list:\t"+strconv.Itoa(last)+"\n", string(out))
		return errors.Join(err, unix.SchedGetaffinity(0, &before))
	})
	require.NoError(t, err)
	require.Equal(t, 1, before.Count())
	require.NoError(t, On(order, func() error { return unix.SchedGetaffinity(0, &after) }))
	require.Equal(t, len(order), after.Count(), "it was for as long as f")

	mine := errors.New("mine")
	require.ErrorIs(t, On(nil, func() error { return mine }), mine)
	err = On([]int{1023}, func() error { t.Error("called"); return nil })
	require.ErrorContains(t, err, "processors [1023]")
}
