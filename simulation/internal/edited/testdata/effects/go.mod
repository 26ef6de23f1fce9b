module effects

go 1.26
