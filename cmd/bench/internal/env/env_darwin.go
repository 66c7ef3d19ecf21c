package env

import "golang.org/x/sys/unix"

func kernel() string { return sysctl("kern.version") }

func cpu() string { return sysctl("machdep.cpu.brand_string") }

func sysctl(name string) string {
	s, err := unix.Sysctl(name)
	if err != nil {
		return ""
	}
	return s
}

func rmem(string) string { return "" }

func load() string { return "" }
