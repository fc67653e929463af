"""`sbudget completion`."""

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, account names and your job ids.

    \b
    bash   sbudget completion bash > /etc/bash_completion.d/sbudget
    zsh    sbudget completion zsh > "${fpath[1]}/_sbudget"
    fish   sbudget completion fish > ~/.config/fish/completions/sbudget.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    script = found(ctx.find_root().command, {}, "sbudget", "_SBUDGET_COMPLETE")
    click.echo(script.source_template % script.source_vars())
