//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// SiwDevice is the name of the guest's iWARP adapter while NeedSiw is in effect.
const SiwDevice = "siw0"

// siwSource is the folder of the module in the kernel's source.
const siwSource = "drivers/infiniband/sw/siw"

// buildSiw returns the kernel module siw for a kernel release, from the cache or built of Debian's
// source package, because Debian's kernels have none.
func buildSiw(ctx context.Context, release string, log func(format string, args ...any)) (string, error) {
	for _, tool := range []string{"make", "gcc", "strip"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("build siw of the kernel source: %s is not installed", tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "softrnic", "interop")
	unlock, err := lockFile(filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	module := filepath.Join(cache, "siw-"+release+".ko")
	if _, err := os.Stat(module); err == nil {
		return module, nil
	}
	begin := time.Now()
	log("building siw for %s of Debian's kernel source, once", release)
	work, err := os.MkdirTemp(cache, "siw-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	series := strings.Join(strings.SplitN(release, ".", 3)[:2], ".") // 6.1 of 6.1.0-56-amd64
	version, flavour := release[:strings.LastIndexByte(release, '-')], release[strings.LastIndexByte(release, '-')+1:]
	headers := fmt.Sprintf("linux-headers-%s-%s", version, flavour)
	cmd := exec.CommandContext(ctx, "sh", "-c", `set -e
		apt-get -qq -o APT::Sandbox::User=root download "linux-source-$SERIES" "$HEADERS" "linux-headers-$VERSION-common" "linux-kbuild-$SERIES"
		for deb in linux-headers-*.deb linux-kbuild-*.deb; do dpkg-deb -x "$deb" .; done
		sed -i "s,/usr/src,$PWD/usr/src," "usr/src/$HEADERS/Makefile"
		dpkg-deb --fsys-tarfile linux-source-*.deb | tar -xO --wildcards '*.tar.xz' | tar -xJ --strip-components=1 --wildcards "*/$SOURCE/*"
		sed -i 's/$(CONFIG_RDMA_SIW)/m/' "$SOURCE/Makefile"
		make -s -C "usr/src/$HEADERS" "M=$PWD/$SOURCE" CC=gcc modules >&2
		strip --strip-debug "$SOURCE/siw.ko"
		mv "$SOURCE/siw.ko" "$MODULE"`)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "SERIES="+series, "VERSION="+version, "HEADERS="+headers, "SOURCE="+siwSource, "MODULE="+module)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build siw: %w\n%s", err, lastLines(string(out), 10))
	}
	log("siw is built (%.0f s)", time.Since(begin).Seconds())
	return module, nil
}

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// NeedSiw returns the guest with the iWARP adapter SiwDevice in place of Device until the end of the
// test. It skips the test with the reason if the lab is unavailable or siw cannot be built.
func NeedSiw(t testing.TB) *Guest {
	t.Helper()
	g := Need(t)
	if insideSetup.Siw == "" {
		t.Skip("no siw: " + insideSetup.NoSiw)
	}
	ctx := context.Background()
	// RDMA-CM chooses any adapter of an interface, so there must be one only.
	script := "rdma link del %s && { grep -q ^siw /proc/modules || insmod /lab/siw.ko; } && rdma link add %s type siw netdev eth0"
	if _, err := g.Output(ctx, "sh", "-c", fmt.Sprintf(script, Device, SiwDevice)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		script := "rdma link del %s && rdma link add %s type rxe netdev eth0"
		if _, err := g.Output(ctx, "sh", "-c", fmt.Sprintf(script, SiwDevice, Device)); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(ctx, bootTime)
		defer cancel()
		if err := g.readGIDs(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}
