module example/exec

go 1.22
