demo test docs bench shell:
	@./run $@

.PHONY: demo test docs bench shell
