module github.com/softrnic/softrnic/dropin

go 1.26.0

require (
	github.com/softrnic/softrnic v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/softrnic/softrnic => ../
