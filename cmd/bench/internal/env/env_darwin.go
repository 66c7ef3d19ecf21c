package env

import "golang.org/x/sys/unix"

func kernelVersion() string { return readSysctl("kern.version") }

func cpuModel() string { return readSysctl("machdep.cpu.brand_string") }

func readSysctl(name string) string {
	s, err := unix.Sysctl(name)
	if err != nil {
		return ""
	}
	return s
}

func netCoreSysctl(string) string { return "" }

func loadAverage() string { return "" }
