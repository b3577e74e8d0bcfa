# ruff: noqa: E501
"""How the page looks: one column, light and dark, from a phone to a wide screen."""

STYLE = """
:root { --ink: #1d2530; --paper: #ffffff; --line: #d9dee5; --soft: #5c6773; --yes: #1f7a4d; --no: #b3261e; --less: #8a6100 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e8ee; --paper: #14181e; --line: #343c47; --soft: #9aa5b1; --yes: #6fd39c; --no: #ff8a80; --less: #e8c15a }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif }
main { max-width: 60rem; margin: 0 auto; padding: 1.2rem 1rem 4rem }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 1rem 0 .4rem }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .4rem; padding-top: 1rem; border-top: 1px solid var(--line) }
h3 { font-size: 1.05rem; margin: 2rem 0 .2rem }
.lead { font-size: 1.05rem }
.scroll { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; width: 100%; font-size: .92rem }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
th { color: var(--soft); font-weight: 600 }
td { font-variant-numeric: tabular-nums }
.verdict { font-weight: 700 }
.yes { color: var(--yes) }
.no { color: var(--no) }
.less { color: var(--less) }
figure { margin: 1.2rem 0 }
figure.wide { overflow-x: auto }
figure.wide img { min-width: 44rem }
figure.wide figcaption { position: sticky; left: 0 }
img { max-width: 100%; height: auto; display: block }
figcaption { color: var(--soft); font-size: .92rem; margin-top: .4rem }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem }
@media (max-width: 34rem) {
  table { font-size: .76rem }
  th, td { padding-right: .35rem; overflow-wrap: anywhere }
  td.verdict { overflow-wrap: normal }
}
details { margin-top: 1.5rem }
summary { cursor: pointer; color: var(--soft) }
pre { overflow-x: auto; font-size: .8rem; border: 1px solid var(--line); padding: .8rem }
"""
