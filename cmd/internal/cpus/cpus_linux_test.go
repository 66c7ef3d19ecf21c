package cpus

import (
	"errors"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestOn(t *testing.T) {
	order := CPUOrder()
	require.NotEmpty(t, order)
	last := order[len(order)-1]
	if RunOn([]int{last}, func() error { return nil }) != nil {
		t.Skip("this process may not choose its processors")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	require.Equal(t, len(order), before.Count())
	mine := errors.New("mine")
	for _, end := range []error{nil, mine} {
		err := RunOn([]int{last}, func() error {
			out, err := exec.Command("grep", "Cpus_allowed_list", "/proc/self/status").Output()
			require.NoError(t, err)
			require.Equal(t, "Cpus_allowed_list:\t"+strconv.Itoa(last)+"\n", string(out))
			return end
		})
		require.Equal(t, end, err)
		require.NoError(t, unix.SchedGetaffinity(0, &after))
		require.Equal(t, before, after, "it was for as long as f")
	}
	require.Equal(t, mine, RunOn(nil, func() error { return mine }))
	err := RunOn([]int{1023}, func() error { t.Error("called"); return nil })
	require.ErrorContains(t, err, "processors [1023]")
}
