"""Every kind of problem a robot file can have: its severity, its text, and what to do about it.

An error makes a file unusable: reading stops with a `RobotFileError`. What is told, a warning,
leaves a robot that can be used, and becomes one `RobotFileWarning` per kind and file. A hint is
for `linkwise.check` alone. Texts name the facts that the place of the problem hands over;
``{value!q}`` is a fact in quotes, cut to one line. Repairs are in
`checking/mend.py`, keyed by code.
"""

from __future__ import annotations

from enum import Enum, unique
from typing import NamedTuple

ERROR, WARNING, HINT = "error", "warning", "hint"
XACRO = "xacro runs code and is never expanded implicitly: run xacro first, then read its output"
RUN_XACRO = "run xacro on this file and check what it writes"
WITHIN_LIMITS = "give a file that can be read within the limits of linkwise.io.xml.ReadLimits"
UNITS = "check the unit and the exponent"
SAYS = " (says MuJoCo's compiler)"
NOT_NEEDED = "delete it if linkwise is all that reads this file"
BODY = "the body moved by joint '{joint}' has "
INERTIAS = BODY + "principal inertias ({principal}) kg m²"
PART = (
    "link {link!q}, merged with links fixed to it into the body moved by joint {joint!q}, has "
    "principal inertias ({principal}) kg m²"
)
ONE_SOURCE_OF_LINK = (
    "take mass, centre and inertia of this link from one source; --repair writes the nearest "
    "possible"
)
REPAIR_OF_LINK = ", as part of a consistent body (`linkwise check --repair` writes the nearest)"
ONE_SOURCE = "take mass, centre and inertia from one source; --repair writes the nearest possible"
WAYS_OUT = 'repair="nearest" takes the nearest physically consistent body, strict=False this one'
MIMIC_FREE = 'mimic="free" lets the joint move on its own'


class Kind(NamedTuple):
    """One row of the table."""

    severity: str  # "error", "warning" or "hint"
    text: str  # the message, with the names of facts in braces
    advice: str  # what to do about it, likewise
    otherwise: str = ""  # what becomes of it with strict=False, where it is a warning then
    ways_out: str = ""  # options that take such a file all the same; said where it is refused


def error(text: str, advice: str = "") -> Kind:
    """A kind of problem that makes a file unusable."""
    return Kind(ERROR, text, advice)


def doubtful(text: str, otherwise: str, advice: str = "", ways_out: str = "") -> Kind:
    """A kind of problem that makes a file unusable, unless it is loaded with ``strict=False``."""
    return Kind(ERROR, text, advice, otherwise, ways_out)


def told(text: str, advice: str = "") -> Kind:
    """A kind of problem that leaves a usable robot."""
    return Kind(WARNING, text, advice)


def objection(advice: str) -> Kind:
    """What MuJoCo's compiler says, in its own ``words``."""
    return Kind(ERROR, "{words}" + SAYS, advice)


def no_driver(
    text: str, advice: str = "follow a revolute, continuous or prismatic joint that follows none"
) -> Kind:
    """Why a joint cannot follow another."""
    return Kind(ERROR, f"{{mimic}}{text} ({MIMIC_FREE})", advice)


def hint(text: str, advice: str = "") -> Kind:
    """A kind of problem that changes nothing for linkwise."""
    return Kind(HINT, text, advice)


@unique
class Code(Enum):
    """Kinds of problem, by name."""

    def __init__(
        self, severity: str, text: str, advice: str, otherwise: str, ways_out: str
    ) -> None:
        self.severity, self.text, self.advice = severity, text, advice
        self.otherwise, self.ways_out = otherwise, ways_out

    OTHER = error("{message}", "{advice}")  # robots that come from no file, in words of their own
    OTHER_TOLD = told("{message}", "{advice}")

    # -- any XML --------------------------------------------------------------------------------
    UNREADABLE = error(
        "cannot be read: {reason}; expected a readable file",
        "give the path of a file that exists and that you may read",
    )
    TOO_LARGE = error("too large; expected at most {most} bytes", WITHIN_LIMITS)
    TOO_MANY_ELEMENTS = error("too many elements; expected {limit}", WITHIN_LIMITS)
    EMPTY_FILE = error("the file is empty; expected an XML document", "give a file with a robot")
    BROKEN_XML = error(
        "not well-formed XML: {reason}; expected an XML document",
        "repair the XML first: the rest of the file was not looked at",
    )
    DOCTYPE = error(
        "a DOCTYPE can define entities and is refused; expected none",
        "delete the DOCTYPE: the rest of the file was not looked at",
    )
    UNKNOWN_ENCODING = error(
        "encoding={encoding!q} is not read; expected one of {known}",
        "save the file as UTF-8: the rest of it was not looked at",
    )
    UNKNOWN_ROOT = error(
        "the root element is <{tag}>; expected <robot> (URDF) or <mujoco> (MJCF){why}",
        "give a URDF file, whose root element is <robot>, or an MJCF file, with <mujoco>",
    )
    NEEDS_XACRO = error("this file needs xacro; " + XACRO, RUN_XACRO)
    XACRO_EXPRESSION = error("{key}={value!q} is a xacro expression; " + XACRO, RUN_XACRO)
    MISSPELT_ELEMENT = error(
        "unknown element <{tag}>; expected <{meant}>", "rename it to <{meant}>"
    )
    MISSPELT_ATTRIBUTE = error(
        "unknown attribute {key}={value!q}; expected {meant}", "rename it to {meant}="
    )
    FOREIGN_ATTRIBUTE = doubtful(
        "unknown attribute {key}={value!q}; expected {known} (strict=False ignores it)",
        "ignored",
        "say it by {known}",
    )
    MISPLACED_ELEMENT = error(
        "<{tag}> inside <{parent}>; expected it inside {home}", "move it into {home}"
    )
    UNKNOWN_ELEMENT = hint(
        "<{tag}> is not read: ignored, with all it contains", "delete it if it is not needed"
    )
    MISPLACED_WORD = told(
        "{written} is not read here; expected {home}: ignored", "write it as {home}"
    )
    UNKNOWN_ATTRIBUTE = hint("unknown attribute {key!q} ignored", "delete it if it is not needed")
    MISSING_PART = doubtful(
        "has no <{tag}>; expected exactly one (strict=False takes it as zero)",
        "taken as zero",
        "add one <{tag} .../>, or delete the element around it",
    )
    SECOND_CHILD = doubtful(
        "a second <{tag}>; expected one (the first is on line {first}; strict=False takes that)",
        "the first is taken",
        "keep one <{tag}> and delete the other",
    )
    MISSING_CHILD = error("has no <{tag}>; expected exactly one", "add one <{tag} .../>")
    MISSING_ATTRIBUTE = error(
        "has no {key} attribute; expected {key}=...", 'write {key}="..." with a value'
    )
    BLANK_ATTRIBUTE = error("{key}={value!q} is empty; expected some text", "write the value")
    WRONG_COUNT = error(
        "{key}={value!q} has {count}; expected {wanted}", "write {wanted}, such as 0.5 or 1e-3"
    )
    NOT_A_NUMBER = error(
        "{key}={value!q}: {word!q} is not a finite decimal number; expected {wanted}",
        "write {wanted}, such as 0.5 or 1e-3",
    )
    TOO_SMALL = error(
        "{key}={value!q} is too small; expected at least {minimum:g}",
        "write a number of {minimum:g} or more",
    )
    NUMBER_TOO_LARGE = error("{key}={value!q} is too large; expected at most {largest:g}", UNITS)
    NO_DIRECTION = error(
        "{key}={value!q} has no direction; expected a vector that is not zero",
        "write a direction, such as 0 0 1 (quaternions: 1 0 0 0)",
    )
    NOT_LOCAL = told(
        "{name!q} is not a local file: never followed",
        "copy the file into the package and name it by package://",
    )
    OUTSIDE_FOLDERS = error(
        "{name!q} leads out of the declared folders; expected package_dirs=[{folder!r}], or a file "
        "under one of: {allowed}",
        "declare its folder with package_dirs=, or keep the file in the folder of the model",
    )
    NO_PATH = error("{name!q} is no path ({reason}); expected a file", "write the path of a file")

    # -- URDF: elements -------------------------------------------------------------------------
    TOO_MANY_LINKS = error("{count} links; expected max_links of at most {most}", WITHIN_LIMITS)
    NO_BODY = error("has no <body>; expected at least one", "add a <body>")
    NO_LINK = error("has no <link>; expected at least one", "add a <link>")
    UNKNOWN_TYPE = error(
        "type={value!q} is not supported; expected one of {known}{perhaps}",
        "use revolute, continuous, prismatic, fixed, floating or planar",
    )
    AXIS_LENGTH = hint(
        "xyz={value!q} has length {length:.6g}: taken as a direction", 'write xyz="{unit}"'
    )
    SKEW_AXES = error(
        "xyz={value!q} is not at a right angle to <axis>; expected perpendicular axes",
        "make the two axes perpendicular",
    )
    NO_PITCH_AXIS = error(
        "has no <axis>; expected one with a pitch", 'add <axis xyz="..." pitch="..."/>'
    )
    NO_LIMIT = told(
        "has no <limit>: the joint is not limited",
        'add <limit lower="..." upper="..." .../>, or make the joint continuous',
    )
    NO_RANGE = told(
        "has neither lower nor upper: the joint's range is not limited",
        "write lower= and upper=, or make the joint continuous",
    )
    LARGE_ANGLE = told(
        "rpy={value!q} is more than a full turn; expected radians: taken as written",
        "write angles in radians: 90 degrees are 1.5708",
    )
    FAR_CENTRE = told(
        "the centre of mass is {distance:.4g} m from the link's origin; expected metres: taken as "
        "written",
        "write lengths in metres: 30 mm are 0.03",
    )
    DISTANT_CENTRE = hint(
        "the centre of mass is {distance:.4g} m from the link's origin",
        "write lengths in metres: 30 mm are 0.03",
    )
    DEGREES = told(
        "lower={lower:g} and upper={upper:g} look like degrees; expected radians: taken as written",
        "write angles in radians: 90 degrees are 1.5708",
    )
    WIDE_RANGE = hint(
        "lower={lower:g} and upper={upper:g} are radians, {turns:.3g} turns",
        "write angles in radians: 90 degrees are 1.5708; or make the joint continuous",
    )
    LIMITS_SWAPPED = told(
        "lower={lower:g} is above upper={upper:g}: the joint's range is not limited",
        "exchange lower and upper if that was meant, or make the joint continuous",
    )
    UNEQUAL_INERTIAS = error(
        "{key}={value:g} differs from {twin}={other:g}; expected a symmetric inertia",
        "delete {key}=, which {twin}= says already",
    )
    NO_SHAPE = told(
        "has no shape that is read ({known}): left out",
        "write one shape, or delete the element around it",
    )
    MANY_SHAPES = told(
        "has {count} shapes; the first is taken",
        "keep one shape; write a second <visual> or <collision> for another",
    )

    # -- the tree of links ----------------------------------------------------------------------
    NAME_TAKEN = error(
        "{what} name {name!q} is already used{line}; expected a new name",
        "give one of them another name",
    )
    UNKNOWN_LINK = error(
        "{end} link {name!q} does not exist; expected a name in this {place}",
        "name a link of this {place}, or add that link",
    )
    MISSPELT_LINK = error(
        "{end} link {name!q} does not exist; expected a name in this {place}, perhaps {meant!q}",
        'write "{meant}", if that was meant',
    )
    OWN_PARENT = error(
        "parent and child are both {name!q}; expected two links", "name two different links"
    )
    SECOND_PARENT = error(
        "child link {child!q} is also the child of joint {joint!q}{line}; expected one parent "
        "joint per link",
        "delete one of the two joints, or exchange the ends of one that is the wrong way round",
    )
    SECOND_ROOT = error(
        "no joint has this link as child, nor {first!q}{line}; expected one root link, got {count}",
        "add a joint that holds this link, or delete the link",
    )
    CYCLE = error(
        "closes a cycle of {count} links ({links}); expected a tree",
        "let one of these joints start at a link outside the cycle",
    )
    UNKNOWN_DRIVER = no_driver(
        "joint={name!q} does not exist; expected a name in this {place}{perhaps}",
        "write the whole name of the joint to follow, with its prefix",
    )
    FOLLOWS_ITSELF = no_driver("joint={name!q} is the joint itself; expected another joint")
    FOLLOWS_IN_CIRCLE = error(
        "joint {name!q} follows itself through {driver!q}; expected joints that end at one that "
        "follows none",
        "let one of these joints follow none",
    )
    CANNOT_FOLLOW = no_driver("{name!q} is {kind}; expected one of {known}, of driver and follower")

    # -- MJCF: files, words and numbers ---------------------------------------------------------
    INCLUDE_ALONE = error(
        "the root element is <mujocoinclude>; expected <mujoco>",
        "check the file that includes this one",
    )
    INCLUDE_NOT_THERE = error(
        "file={name!q} is not there; expected a file to include",
        "put the file into the folder of the model, or delete the <include>",
    )
    INCLUDED_TWICE = error(
        "file={name!q} is already included ({first}); expected it once", "include it once"
    )
    INCLUDE_NOT_EMPTY = error(
        "has elements of its own; expected them in the included file",
        "move its elements behind the <include>",
    )
    TOO_MANY_INCLUDES = error(
        "more than {most} files are included; expected at most that",
        "write some of them into one file",
    )
    FOREIGN_ELEMENT = error(
        "<{tag}> inside <{parent}>; expected an element that <{parent}> takes", "delete it"
    )
    NO_SUCH_ATTRIBUTE = error(
        "unknown attribute {key}={value!q}; expected one that <{tag}> takes",
        "delete {key}=, or see <{tag}> in MuJoCo's XML reference",
    )
    RANGE_SWAPPED = error(
        "{key}={value!q} starts above its end; expected lower <= upper",
        "exchange its two numbers, if that was meant",
    )
    NOT_WHOLE = error("count={value!q}; expected whole numbers", "write a smaller whole number")
    TOO_MANY_COPIES = error(
        "{count} copies; expected at most {most}", "write a smaller whole number"
    )
    NESTED_MODEL = error(
        "a model inside a model is not read; expected its elements, or <include>",
        "write its elements here, or <include> them",
    )
    FILE_NOT_READ = error(
        "{key}={name!q}: files are not read here; expected none", "delete the attribute"
    )
    FILE_NOT_THERE = error(
        "{key}={name!q} is not there; expected a file",
        "put the file where the model says, or declare its folder with package_dirs=",
    )
    MESH_NEEDED = error(
        "its inertia comes from its shapes, and a mesh is not in the declared folders ({missing}); "
        "expected package_dirs= with its folder, an <inertial>, or the file under one of: "
        "{allowed}",
        "give the body an <inertial>, or put the mesh where the file says",
    )

    MESH_LEFT_OUT = hint(
        "{name!q} is not in the declared folders: its shape is left out",
        "put the file where the model says, or declare its folder with package_dirs=",
    )

    # -- MJCF: what MuJoCo's compiler says ------------------------------------------------------
    UNKNOWN_KEYWORD = error("invalid keyword: {key}={value!q} of a <{tag}>" + SAYS, "{advice}")
    WRONG_AMOUNT = objection("write {amount} numbers in {key}=")
    ABSENT_ATTRIBUTE = objection('write {key}="..."')
    REPEATED_NAME = objection("give one of the two another name")
    REPEATED_CLASS = objection("give one of the classes another name")
    EMPTY_CLASS = objection('write class="..."')
    UNKNOWN_NAME = objection("{advice}")
    MISSPELT_NAME = error(
        "{words}" + SAYS + "; perhaps {meant!q}", 'write "{meant}", if that was meant'
    )
    SECOND_ORIENTATION = objection(
        "keep one of quat, axisangle, euler, xyaxes and zaxis; none beside fullinertia"
    )
    INNER_FREE_JOINT = objection('make it type="ball", or move the body into <worldbody>')
    TOO_MANY_JOINTS = objection("a free joint is the only joint of its body: delete the others")
    NO_WORLD_JOINT = objection("move it into a <body>")
    LIMITED_BY_NOTHING = objection("write range= with lower < upper, or leave limited= out")
    NO_BODY_MASS = objection(
        "give the body an <inertial> or a <geom> with mass, or delete its joint"
    )
    BODY_TRIANGLE = objection(
        'take mass, centre and inertia from one source; <compiler balanceinertia="true"/> '
        "averages it"
    )
    BODY_INDEFINITE = objection("take mass, centre and inertia from one source")
    NO_SIZE = objection("write size= with lengths above 0")
    NO_MESH = objection("write mesh= with the name of a mesh of <asset>")
    NO_TARGET = objection("write joint= with the joint that it drives")
    NAMED_TWICE = objection("name two different elements")
    NO_HINGE = objection("name a hinge or a slide")
    MUJOCO_ERROR = objection("see <{tag}> in MuJoCo's XML reference")
    MUJOCO_WARNING = told("{words}" + SAYS, "see MuJoCo's XML reference")

    # -- MJCF: more than a tree of joints -------------------------------------------------------
    CLOSES_LOOP = error(
        "the equality constraint {which} is neither of joints of one axis nor a closed loop "
        '(<connect>, <weld>); expected loops="open", which leaves out all but mimic joints, or a '
        "model without it",
        'load it with loops="open", if a robot without this constraint will do',
    )
    LOOP_OPENED = told('the equality constraint {which} is left out (loops="open")', NOT_NEEDED)
    TIED_TO_MOCAP = told(
        "a constraint to a mocap body is left out: the body is taken as fixed", NOT_NEEDED
    )
    COUPLED_ROTOR = doubtful(
        "armature {armature:g} of the tendon (its own and its actuators') {why}; expected a tendon "
        "of one joint (strict=False leaves it out)",
        "left out",
        "give the armature to joints instead",
    )
    FREE_JOINT_FRICTION = told(
        "frictionloss {value} of a free joint acts along the body's own axes (with friction=True); "
        "MuJoCo's acts along world axes where the body slides",
        "set it to 0, unless that is what was meant",
    )
    NEGATIVE_DAMPING = told(
        "damping {value:g} is negative: it would drive the joint (with friction=True)",
        "write zero or more",
    )
    SPRING = told("the spring (stiffness) is left out", NOT_NEEDED)
    ACTUATOR_FORCES = told(
        "actuators that are springs or dampers in MuJoCo, without any control (position, velocity, "
        "general with a bias), are left out: {names}; torques are those that you give",
        "give their torques by a controller, such as linkwise.control.pd; <motor> has none",
    )
    TENDON_FORCES = told("stiffness and damping of the tendon are left out", NOT_NEEDED)
    GRAVCOMP = told("gravcomp is left out: the body has its weight", NOT_NEEDED)
    MOCAP = told("a mocap body is taken as fixed to the world", NOT_NEEDED)
    CURVED_DAMPING = told("only the linear part of damping is read", NOT_NEEDED)
    FLEX = told("elasticity of deformable bodies (flex) is left out", NOT_NEEDED)
    FLUID = told("the fluid (density, viscosity) is left out", NOT_NEEDED)
    SITE_RENAMED = hint(
        "a body or joint has the same name: the frame of this site is called {used!q}",
        "give the site a name of its own",
    )

    # -- bodies ---------------------------------------------------------------------------------
    NOT_FINITE = error(
        BODY + "a mass or inertia that is not finite; expected finite numbers", UNITS
    )
    NEGATIVE_MASS = error(
        BODY + "mass {mass:g} kg; expected zero or more", "write the mass of the link"
    )
    TINY_MASS = error(
        BODY + "mass {mass:g} kg; expected zero, or at least {least:g} kg: its products would "
        "vanish",
        UNITS,
    )
    TINY_INERTIA = error(
        INERTIAS + "; expected each at least {least:g}: their products would vanish", UNITS
    )
    NEGATIVE_INERTIA = doubtful(
        INERTIAS + "; expected none negative", "taken as written", ONE_SOURCE, WAYS_OUT
    )
    TRIANGLE = doubtful(
        INERTIAS + "; expected each at most the sum of the other two",
        "taken as written",
        ONE_SOURCE,
        WAYS_OUT,
    )
    TRIANGLE_NEARLY = told(
        INERTIAS + ", the largest {percent:.2g} % above the sum of the other two: taken as written",
        ONE_SOURCE,
    )
    HIDDEN_NEGATIVE_INERTIA = told(
        PART + "; expected none negative: taken as written" + REPAIR_OF_LINK, ONE_SOURCE_OF_LINK
    )
    HIDDEN_TRIANGLE = told(
        PART
        + "; expected each at most the sum of the other two: taken as written"
        + REPAIR_OF_LINK,
        ONE_SOURCE_OF_LINK,
    )
    INERTIA_WITHOUT_MASS = told(
        BODY + "inertia and no mass: taken as written", "write the mass of the link"
    )
    POINT_MASS = told(
        BODY + "mass {mass:g} kg and no inertia: taken as a point", "write the inertia of the link"
    )
    UNMOVED = told(
        "joints that move no inertia: {names}; functions that divide by that inertia, such as "
        "forward dynamics, are {effect}",
        "add an <inertial> to their links, or make the joints fixed",
    )
    BASE_WITHOUT_INERTIA = told(
        "link {link!q}, the floating base, has no mass or inertia: functions that divide by it, "
        "such as forward dynamics and simulate, are {effect}; expected an <inertial>, "
        'robot.with_inertia({link!q}, mass=..., inertia=...), or base="fixed"',
        'add an <inertial> to the base link, or load it with base="fixed"',
    )
    MASSLESS = told(
        "joints of links without mass of their own: {names}; the mass matrix can become singular",
        "add an <inertial> to their links",
    )
